"""The old and the new configuration side by side, each request sent to both, and what was not answered equally."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from apps.compiler.bundle import Bundle
from apps.importing.contract import Import
from apps.importing.replay.access_logs import Logged
from apps.importing.replay.asking import requests
from apps.importing.replay.connecting import CLIENT, connect, openings
from apps.importing.replay.contract import Answer, Asked, Difference, NotReplayable, Old, Opening, Replay, Request
from apps.importing.replay.programs import PATIENCE_S, run_haproxy
from apps.importing.replay.stubs import MARK, stub_servers

# For an answer: the old file may drop a request without one.
ANSWER_S = 8.0
# Set by HAProxy, by our nodes for all requests, or by how a connection goes on.
NOT_COMPARED = frozenset(
    {
        *(
            "date",
            "connection",
            "keep-alive",
            "content-length",
            "content-type",
            "set-cookie",
            "cache-control",
            "server",
        ),
        *("x-request-id", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-port", "x-forwarded-host", "x-real-ip"),
        *("accept-encoding", "transfer-encoding", "location"),
        *(
            "allow",
            "retry-after",
            "www-authenticate",
            "vary",
            "content-encoding",
            "forwarded",
            "cookie",
            "proxy",
            "date",
        ),
        *("traceparent", "tracestate", "cdn-loop", "x-forwarded-prefix", MARK.lower()),
    }
)
# What is decided by time, by files of machines or by TLS of servers is taken out of both sides.
OF_POOLS = ("health_check", "agent_check", "outlier_ejection", "server_tls", "proxy_protocol", "http_version",
            "slow_start_ms", "persistence")  # fmt: skip
# Versions and ciphers are what a program and a client agree upon, as each was built.
_TLS = re.compile(r"TLSv1\.[0-3]|\b(?:TLS|ECDHE|DHE|AES)[A-Z0-9]*(?:[_-][A-Z0-9]+){2,}")
# Each side makes its own id for a request: 32 digits, or a UUID.
_ID = re.compile(r"\b[0-9a-f]{8}(-?)(?:[0-9a-f]{4}\1){3}[0-9a-f]{12}\b", re.IGNORECASE)
Compile = Callable[[list[dict[str, Any]]], tuple[Bundle, Mapping[str, str]]]
"""Documents as the bundle of a fleet, and the names of pools by their ids."""
_Listener = tuple[str, dict[str, Any]]


def documents_for_replay(found: Import, certificate: str) -> list[dict[str, Any]]:
    """The documents without checks and limits, and with one certificate for all listeners."""
    kept = []
    for document in found.documents:
        spec = json.loads(json.dumps(document["spec"]))
        if document["kind"] == "Pool":
            spec = _with_stubs(spec)
        if document["kind"] in ("Policy", "Route"):
            spec.get("rules", {}).pop("client_limit", None)
        if document["kind"] == "LoadBalancer":
            for listener in spec["listeners"]:
                if said := listener.get("client_address", {}).get("forwarded_from"):
                    said.append("127.0.0.0/8")  # where the replay asks from
                if "certificates" in listener:
                    listener |= {"certificates": [certificate], "default_certificate": certificate}
                    listener.pop("client_certificates", None)
        if document["kind"] != "Certificate":
            kept.append({**document, "spec": spec})
    return _without_empty_rules(kept)


def _with_stubs(spec: dict[str, Any]) -> dict[str, Any]:
    """A pool without what stubs have none of; one of them stands for servers that are looked up."""
    found = {"name": "found", "address": "192.0.2.1", "port": 80}
    backends = [
        {"region": each["region"], "servers": [found]} if each.get("servers_from") else each
        for each in spec["backends"]
    ]
    return {name: value for name, value in spec.items() if name not in OF_POOLS} | {"backends": backends}


def _without_empty_rules(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    empty = {each["name"] for each in documents if each["kind"] == "Policy" and not each["spec"]["rules"]}
    for document in documents:
        spec = document["spec"]
        if document["kind"] == "Route":
            spec["policies"] = [name for name in spec.get("policies", ()) if name not in empty]
            if not spec.get("rules", True):
                del spec["rules"]
    return [each for each in documents if each["kind"] != "Policy" or each["name"] not in empty]


def replay(
    old: Old,
    found: Import,
    compiled: Compile,
    folder: Path,
    certificate: tuple[str, Path],
    log: Sequence[Logged] = (),
) -> Replay:
    """Run both and compare. `certificate` is one of ours by name, with its file. Raises NotReplayable.

    `log` are requests of an access log, which are asked as well.
    """
    spare = _spare_ports()
    with stub_servers(sorted(set(old.pools.values()))) as stubs:
        old.write(stubs, folder, spare, certificate[1])
        bundle, names = compiled(documents_for_replay(found, certificate[0]))
        listeners = {port: each for port, each in _listeners(found).items() if port in old.ports}
        new, now_at = _lay_out(bundle, names, old.pools, stubs, folder / "new", spare)
        with old.running(folder), run_haproxy(new, folder / "new"):
            asked = _asked(found, old, listeners, log)
            different = []
            for request in asked:
                encrypted = old.encrypted[request.port]
                before = _as_meant(ask(request, old.ports[request.port], encrypted=encrypted), old.ports)
                after = ask(request, now_at[request.port], encrypted=encrypted)
                if said := before.differences(after):
                    different.append(Difference(request, tuple(said), old.lines(request, before, after)))
    return Replay(len(asked), tuple(different))


def _asked(found: Import, old: Old, listeners: Mapping[int, _Listener], log: Sequence[Logged]) -> list[Asked]:
    """Requests to ports of http, and connections to those of tcp."""
    routes = [each["spec"] for each in found.documents if each["kind"] == "Route"]
    words = old.words()
    of_http = {port: front for port, (front, spec) in listeners.items() if spec["protocol"] != "tcp"}
    of_tcp = {port: spec for port, (_, spec) in listeners.items() if spec["protocol"] == "tcp"}
    return [*requests(words, of_http, routes, log), *openings(words, of_tcp, old.encrypted)]


def _as_meant(answer: Answer, ports: Mapping[int, int]) -> Answer:
    """An answer of the old configuration that leads to one of its ports, with the port that it has there."""
    location = answer.location
    for meant, here in ports.items():
        location = re.sub(rf"^(https?://[^/:]+):{here}(?=/|$)", rf"\1:{meant}", location)
    return replace(answer, location=location)


def _listeners(found: Import) -> dict[int, _Listener]:
    """Ports with the load balancer and the document of their listener."""
    return {
        listener["port"]: (document["name"], listener)
        for document in found.documents if document["kind"] == "LoadBalancer"
        for listener in document["spec"]["listeners"]
    }  # fmt: skip


def _lay_out(
    bundle: Bundle,
    names: Mapping[str, str],
    pools: Mapping[str, str],
    stubs: Mapping[str, int],
    folder: Path,
    spare: Iterator[int],
) -> tuple[Path, dict[int, int]]:
    """The bundle with stub servers, on spare ports; its file, and the ports by those that were meant."""
    port_of = {pool_id: stubs[pools[name]] for pool_id, name in names.items() if name in pools}
    folder.mkdir()
    for path, content in bundle.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    now_at = {bind.port: next(spare) for bind in bundle.binds}
    lines, section = [], ""
    for line in bundle.files["haproxy.cfg"].decode().splitlines():
        found = re.match(r"(?:backend|frontend) (\S+)", line)
        section = found[1] if found else section
        lines.append(re.sub(r"^(    server \S+) \S+", rf"\1 127.0.0.1:{port_of.get(section, 9)}", line))
    (folder / "haproxy.cfg").write_text("\n".join(lines) + "\n")
    settings = {"RUN": str(folder), "GENERATION": "1", "DIGEST": bundle.digest, "PROBE": "probe-of-the-replay"}
    node = ["global", *(f"    setenv SPILLWAY_{name} {value}" for name, value in settings.items())]
    node += [f"    setenv {bind.variable} 127.0.0.1:{now_at[bind.port]}" for bind in bundle.binds]
    (folder / "node.cfg").write_text("\n".join([*node, f"    server-state-file {folder}/servers", ""]))
    return folder / "haproxy.cfg", now_at


def ask(request: Asked, port: int, *, encrypted: bool) -> Answer:
    """One request on a new connection, or the connection alone; waits until somebody listens."""
    until = time.monotonic() + PATIENCE_S
    while True:
        with suppress(ConnectionRefusedError):
            if isinstance(request, Opening):
                return connect(request, port, ends=encrypted)
            return _ask(request, port, encrypted=encrypted)
        if time.monotonic() > until:
            raise NotReplayable(f"Nobody listens on port {port}.")
        time.sleep(0.05)


def _ask(request: Request, port: int, *, encrypted: bool) -> Answer:
    connection: http.client.HTTPConnection
    if encrypted:
        tls = ssl.create_default_context()
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=ANSWER_S, context=tls, source_address=CLIENT
        )
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S, source_address=CLIENT)
    try:
        connection.request(request.method, request.path, headers={"Host": request.host, **request.headers})
        response = connection.getresponse()
        body = response.read()
    except (http.client.HTTPException, BrokenPipeError, ConnectionResetError, TimeoutError):
        return Answer(0)
    finally:
        connection.close()
    return _answer(request, port, response, body, encrypted=encrypted)


def _answer(request: Request, port: int, response: http.client.HTTPResponse, body: bytes, *, encrypted: bool) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    base = f"{'https' if encrypted else 'http'}://{request.host}{request.path}"
    location = urljoin(base, headers["location"]) if "location" in headers else ""
    pool = headers.get(MARK.lower(), "")
    seen: dict[str, Any] = json.loads(body) if pool and body else {"path": "", "headers": {}}
    return Answer(
        response.status,
        pool,
        location,
        seen["path"],
        _compared(headers, request, port) if pool else {},
        _compared(seen["headers"], request, port),
    )


def _compared(headers: Mapping[str, str], request: Request, port: int) -> dict[str, str]:
    """The headers that both sides must write alike; `port` is where this side listens in place of the request's."""
    own = re.compile(rf"(?<![0-9]){port}(?![0-9])")
    said = {name: own.sub(str(request.port), value) for name, value in headers.items() if name not in NOT_COMPARED}
    return {name: _ID.sub("(id)", _TLS.sub("(TLS)", value)) for name, value in said.items()}


def _spare_ports() -> Iterator[int]:
    """Ports that nobody has in this moment, each once."""
    given: set[int] = set()
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        if port not in given:
            given.add(port)
            yield port
