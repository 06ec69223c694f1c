"""The real hand: speaks to a node's agent over a Unix socket or HTTPS with a client certificate."""

from __future__ import annotations

import base64
import dataclasses
import http.client
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from apps.compiler.bundle import MANIFEST, Bundle
from apps.compiler.model.operations import (
    AddServer,
    DeleteServer,
    Operation,
    ReplaceMap,
    SetCertificate,
    SetServerMaxconn,
    SetServerState,
    SetServerWeight,
    UpdateCertificateList,
)
from apps.drivers.proxy.connections import CONNECTIONS, Shown
from apps.drivers.proxy.contract import (
    LONGEST_LOG_WAIT_S,
    BanEntries,
    BanEntry,
    CounterReading,
    CounterRow,
    LogSegment,
    LogSegments,
    NodeState,
    NodeTarget,
    Observation,
    ProxyError,
    Refused,
    Seen,
    Superseded,
    Unavailable,
    Unreachable,
)
from apps.drivers.proxy.protocol import SPOKEN, TELLS_CHANGES

WORDS = {word: word for word in ("held", "standby", "announced", "withdrawn")}
READ_SECONDS = 5.0
# A node checks a bundle, starts it on trial, lets a worker load it and, when that fails, the old one again. It takes
# its time for each by the bundle's size (apps/agent/check/load_time.py), and this is not less.
PUSH_SECONDS = 90.0
LOADS = 4
# What they say stands in haproxy.cfg.
SERVERS = (SetServerState, SetServerWeight, SetServerMaxconn, AddServer, DeleteServer)
SENT_WHOLE = (ReplaceMap, SetCertificate, UpdateCertificateList)
CERTIFICATE_SECONDS = 0.02
MEGABYTE_SECONDS = 0.5
KEY_SECONDS = 30.0  # of a slow machine that makes a key
OK, NOT_FOUND, MISSING = 200, 404, 428
# What we see of a node and no node says of itself.
SEEN = frozenset({"certificate_sha256", "certificate_ends"})
# A segment has 1 MiB of lines (apps/agent/log/segments.py), and one line more than that.
LARGEST_SEGMENT = 4 * 1024 * 1024
# Whatever the clock of a node did while lines waited there: ten years say that enough.
LONGEST_KEPT_S = 10 * 366 * 86_400.0
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)
ROW_FIELDS = CounterRow._fields


class AgentDriver:
    """One node's agent; connections are kept by the process, so an object may be shared between threads."""

    def __init__(self, target: NodeTarget) -> None:
        self._target = target

    def push_bundle(self, bundle: Bundle, generation: int) -> NodeState:
        """PUT /v1/bundle."""
        return self._put(bundle, generation)

    def check_bundle(self, bundle: Bundle, generation: int, stage: str) -> NodeState:
        """PUT /v1/bundle, as far as a stage before the switch."""
        return self._put(bundle, generation, stage)

    def _put(self, bundle: Bundle, generation: int, only_check: str = "") -> NodeState:
        body = {"generation": generation, "digest": bundle.digest, "only_check": only_check}
        content = body | {"protocols": SPOKEN} | {"files": encode(bundle.files)}
        return read_node_state(self._call("PUT", "/v1/bundle", content, push_seconds(bundle)))

    def run_operations(
        self, operations: tuple[Operation, ...], bundle: Bundle, base_digest: str, generation: int
    ) -> NodeState:
        """POST /v1/runtime; sends the text of files only where the agent cannot make it from what it has."""
        paths = {each.path for each in operations if isinstance(each, SENT_WHOLE)}
        if any(isinstance(each, SERVERS) for each in operations):
            paths.add("haproxy.cfg")
        for _ in range(2):
            body = {
                "protocols": SPOKEN,
                "generation": generation,
                "base_digest": base_digest,
                "manifest": base64.b64encode(bundle.files[MANIFEST]).decode(),
                "operations": [dataclasses.asdict(each) for each in operations],
                "files": encode({path: bundle.files[path] for path in paths if path in bundle.files}),
            }
            answer = self._call("POST", "/v1/runtime", body, push_seconds(bundle))
            if "missing" not in answer:
                return read_node_state(answer)
            paths |= set(answer["missing"])
        raise Refused(f"{self._target.name}: the agent asks for files again and again.", stage="runtime")

    def give_ticket_secrets(self, secrets: tuple[str, ...]) -> NodeState:
        """PUT /v1/tickets."""
        return read_node_state(self._call("PUT", "/v1/tickets", {"secrets": list(secrets)}, READ_SECONDS * 2))

    def request_certificate(self) -> str:
        """POST /v1/certificate/request."""
        return self._text("request", self._call("POST", "/v1/certificate/request", {}, KEY_SECONDS))

    def give_certificate(self, certificate: str, authorities: str) -> str:
        """PUT /v1/certificate."""
        body = {"certificate": certificate, "authorities": authorities}
        return self._text("sha256", self._call("PUT", "/v1/certificate", body, READ_SECONDS * 2))

    def _text(self, name: str, answer: Mapping[str, Any]) -> str:
        if not isinstance(answer.get(name), str):
            raise self._unreadable(f"{name} is missing")
        return str(answer[name])

    def read_state(self) -> NodeState:
        """GET /v1/state, with the certificate that the node showed for it."""
        status, content, shown = self._exchange("GET", "/v1/state", None, READ_SECONDS)
        state = read_node_state(self._read(status, content, "/v1/state"))
        return dataclasses.replace(state, certificate_sha256=shown.sha256, certificate_ends=shown.ends)

    def read_counters(self) -> CounterReading:
        """GET /v1/samples."""
        answer = self._call("GET", "/v1/samples", None, READ_SECONDS * 2)
        try:
            return read_counter_reading(answer, tuple(CounterRow(**row) for row in answer["rows"]))
        except UNREADABLE as error:
            raise self._unreadable(error) from error

    def observe(self, seen: Seen | None = None) -> Observation:
        """GET /v1/reading; an agent that is older than this call is asked for state and samples, all of them."""
        if seen is None or seen.state.protocols[1] >= TELLS_CHANGES:
            path = f"/v1/reading?since={quote(seen.token, safe='')}" if seen else "/v1/reading"
            status, content, shown = self._exchange("GET", path, None, READ_SECONDS * 2)
            if status != NOT_FOUND:
                return self._observation(self._read(status, content, path), shown, seen)
        state = self.read_state()
        if not state.workers:
            return Observation(state, clock=state.clock)
        try:
            return Observation(state, self.read_counters(), clock=state.clock)
        except ProxyError as error:
            return Observation(state, trouble=error.message, clock=state.clock)

    def _observation(self, answer: Mapping[str, Any], shown: Shown, seen: Seen | None) -> Observation:
        try:
            base, found = answer["base"], answer["samples"]
            if base and (seen is None or base != seen.token):
                raise ValueError("the changes are of an answer that was not asked for")
            state = seen.state if seen is not None and base and answer["state"] is None else None
            if state is None:
                state = read_node_state(answer["state"])
            if (state.certificate_sha256, state.certificate_ends) != (shown.sha256, shown.ends):
                state = dataclasses.replace(state, certificate_sha256=shown.sha256, certificate_ends=shown.ends)
            counters = None
            if found is not None:
                counters = read_counter_reading(found, _rows(found), answer["token"], base)
            return Observation(state, counters, str(answer.get("trouble", "")), answer["clock"])
        except UNREADABLE as error:
            raise self._unreadable(error) from error

    def log_segments(self, wait_s: float = 0.0) -> LogSegments:
        """GET /v1/log/segments; a node whose agent is older than this call writes no lines."""
        wait = min(max(wait_s, 0.0), LONGEST_LOG_WAIT_S)
        status, content = self._ask("GET", f"/v1/log/segments?wait={wait:.1f}", None, READ_SECONDS + wait)
        if status == NOT_FOUND:
            return LogSegments(off=f"The agent of {self._target.name} is too old to keep request lines.")
        answer = self._read(status, content, "/v1/log/segments")
        try:
            segments = tuple(LogSegment(str(e["id"]), int(e["lines"]), int(e["bytes"])) for e in answer["segments"])
            dropped, oldest_s = int(answer["dropped"]), min(max(float(answer["oldest"]), 0.0), LONGEST_KEPT_S)
            if not 0 <= dropped < 2**63 or math.isnan(oldest_s):
                raise ValueError("numbers that nothing can have")
            return LogSegments(segments, dropped, oldest_s, str(answer.get("off", "")))
        except (*UNREADABLE, OverflowError) as error:
            raise self._unreadable(error) from error

    def read_log_segment(self, segment_id: str) -> bytes:
        """GET /v1/log/segments/<id>; what no node of ours would send is refused, however it is compressed."""
        path = _segment_path(segment_id)
        status, content = self._ask("GET", path, None, READ_SECONDS * 2)
        if status == NOT_FOUND:
            return b""
        if status != OK:
            self._read(status, content, path)
        packed = zlib.decompressobj()
        try:
            lines = packed.decompress(content, LARGEST_SEGMENT)
        except zlib.error as error:
            raise self._unreadable(error) from error
        if not packed.eof:
            raise self._unreadable(f"segment {segment_id} is cut off or larger than {LARGEST_SEGMENT} bytes")
        return lines

    def acknowledge_log_segment(self, segment_id: str) -> None:
        """DELETE /v1/log/segments/<id>."""
        path = _segment_path(segment_id)
        status, content = self._ask("DELETE", path, None, READ_SECONDS)
        if status != NOT_FOUND:
            self._read(status, content, path)

    def read_bans(self) -> BanEntries:
        """GET /v1/bans."""
        answer = self._of_bans("GET", "/v1/bans")
        try:
            found = (BanEntry(str(e["table"]), str(e["key"]), float(e["ends_in_s"])) for e in answer["entries"])
            return BanEntries(tuple(found), bool(answer["more"]))
        except UNREADABLE as error:
            raise self._unreadable(error) from error

    def lift_ban(self, table: str, key: str) -> None:
        """DELETE /v1/bans."""
        self._of_bans("DELETE", f"/v1/bans?table={quote(table, safe='')}&key={quote(key, safe='')}")

    def _of_bans(self, method: str, path: str) -> dict[str, Any]:
        status, content = self._ask(method, path, None, READ_SECONDS)
        if status == NOT_FOUND:
            raise Unavailable(f"The agent of {self._target.name} is too old to tell who is banned.")
        return self._read(status, content, path)

    def _unreadable(self, why: object) -> Unreachable:
        return Unreachable(f"{self._target.name}: the agent's answer cannot be read ({why}).")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None, timeout: float) -> dict[str, Any]:
        status, content = self._ask(method, path, body, timeout)
        return self._read(status, content, path)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None, timeout: float) -> tuple[int, bytes]:
        """The status and the bytes of one answer."""
        return self._exchange(method, path, body, timeout)[:2]

    def _exchange(
        self, method: str, path: str, body: Mapping[str, Any] | None, timeout: float
    ) -> tuple[int, bytes, Shown]:
        """The same, and the certificate that stood for it."""
        try:
            content = None if body is None else json.dumps(body).encode()
            return CONNECTIONS.ask(self._target, method, path, content, timeout)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._silent(error) from error

    def _read(self, status: int, content: bytes, path: str) -> dict[str, Any]:
        """The JSON of an answer that is none of an error."""
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self._silent(error) from error
        if not isinstance(answer, dict):
            raise self._unreadable("it is no object")
        if status in (OK, MISSING):
            return answer
        raise _failure(self._target.name, status, answer, "validate" if path == "/v1/bundle" else "runtime")

    def _silent(self, error: Exception) -> Unreachable:
        return Unreachable(f"{self._target.name} does not answer at {self._target.url}: {error}.")


def _segment_path(segment_id: str) -> str:
    return f"/v1/log/segments/{quote(segment_id, safe='')}"


def push_seconds(bundle: Bundle) -> float:
    """How long a node may take for this bundle before it counts as one that does not answer."""
    certificates = sum(path.endswith(".pem") for path in bundle.files)
    megabytes = sum(map(len, bundle.files.values())) / 1e6
    return PUSH_SECONDS + LOADS * (certificates * CERTIFICATE_SECONDS + megabytes * MEGABYTE_SECONDS)


def encode(files: Mapping[str, bytes]) -> dict[str, str]:
    """Contents as base64 text."""
    return {path: base64.b64encode(content).decode() for path, content in files.items()}


def _rows(found: Mapping[str, Any]) -> tuple[CounterRow, ...]:
    """Rows without names, in an order that the agent tells."""
    names = tuple(found["fields"])
    if names == ROW_FIELDS:
        return tuple(map(CounterRow._make, found["rows"]))
    known = [(name, names.index(name)) for name in ROW_FIELDS if name in names]
    return tuple(CounterRow(**{name: row[at] for name, at in known}) for row in found["rows"])


def read_counter_reading(
    found: Mapping[str, Any], rows: tuple[CounterRow, ...], token: str = "", base: str = ""
) -> CounterReading:
    """The agent's JSON with these rows; raises one of UNREADABLE."""
    return CounterReading(
        epoch=found["epoch"],
        read_at=found["read_at"],
        rows=rows,
        latency_buckets={
            pool: {int(bound): count for bound, count in counts.items()}
            for pool, counts in found["latency_buckets"].items()
        },
        admitted=found.get("admitted", {}),
        peers=found.get("peers", {}),
        distances_ms=found.get("distances_ms", {}),
        in_use=found.get("in_use", {}),
        token=token,
        base=base,
        gone=tuple([(kind, name) for kind, name in found.get("gone", ())]),
        resumed=found.get("resumed") is True,
    )


def read_node_state(answer: Mapping[str, Any]) -> NodeState:
    """The agent's JSON as a NodeState; unknown fields are ignored; missing ones: it is no agent of ours."""
    known = {field.name for field in dataclasses.fields(NodeState)} - SEEN
    try:
        found = {key: value for key, value in answer.items() if key in known}
        addresses = {str(key): WORDS[word] for key, word in found.get("addresses", {}).items()}
        lists: dict[str, tuple[Any, ...]] = {
            name: tuple(found[name]) for name in ("drift", "features", "protocols") if name in found
        }
        return NodeState(**(found | lists | {"addresses": addresses}))
    except (TypeError, KeyError, AttributeError) as error:
        raise Unreachable(f"The agent's answer cannot be read ({error}).") from error


def _failure(name: str, status: int, answer: Mapping[str, Any], stage: str) -> ProxyError:
    message = f"{name}: {answer.get('message', f'status {status}')}"
    if status == 409:
        return Superseded(message)
    if status == 422:
        return Refused(message, stage=answer["stage"], line=answer.get("line"), output=answer.get("output", ""))
    if status in (400, 404, 413):
        return Refused(message, stage=stage)
    if status == 503:
        return Unavailable(message)
    return Unreachable(message)
