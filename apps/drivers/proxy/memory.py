"""The honest fake: nodes that live in this process and refuse what a real one refuses.

`memory://<name>` names a node; `memory_node(name)` opens its world to a test.
"""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from urllib.parse import urlsplit

from apps.compiler.bundle import MANIFEST, Bundle, digest_of, digest_of_all
from apps.compiler.model.operations import (
    DeleteMapEntry,
    Operation,
    ReplaceMap,
    SetCertificate,
    SetMapEntry,
    UpdateCertificateList,
)
from apps.drivers.proxy.contract import (
    CHECKED,
    LONGEST_LOG_WAIT_S,
    BanEntries,
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
from apps.drivers.proxy.protocol import SPOKEN


@dataclass
class MemoryNode:
    """A node's state and the controls of its world.

    `unreachable` makes every call fail; `unavailable`, while it says why, keeps the node from taking any push;
    `refusal` is raised by the next pushes and operations, `refusal_for` says for each bundle what is raised; `rows`
    to `in_use` are what read_counters answers, `addresses` what it says of static IPs, `ticket_secrets` what session
    tickets are made from; writing to `files` is what a stranger who edits them does. `log` are the segments that wait
    (id → lines), of `log_dropped` lines before them, `bans` the clients that limits banned. `told` is what was
    observed last.
    """

    name: str
    unreachable: bool = False
    refusal: ProxyError | None = None
    refusal_for: Callable[[Bundle], ProxyError | None] | None = None
    unavailable: str = ""
    haproxy_version: str = "2.6.12"
    http3: bool = False
    features: tuple[str, ...] = ()
    protocols: tuple[int, int] = SPOKEN
    clock_ahead_s: float = 0.0
    rows: tuple[CounterRow, ...] = ()
    latency_buckets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    admitted: Mapping[str, int] = field(default_factory=dict)
    peers: Mapping[str, bool] = field(default_factory=dict)
    distances_ms: Mapping[str, int] = field(default_factory=dict)
    in_use: Mapping[str, float] = field(default_factory=lambda: {"cpu": 0.0, "connections": 0.0})
    addresses: Mapping[str, str] = field(default_factory=dict)
    ticket_secrets: tuple[str, ...] = ("00" * 32, "11" * 32, "22" * 32)
    files: dict[str, bytes] = field(default_factory=dict)
    generation: int = 0
    digest: str = ""
    reloads: int = 0
    epoch: int = 0
    last_error: str = ""
    pushes: int = 0
    checks: int = 0
    operations: list[Operation] = field(default_factory=list)
    log: dict[str, bytes] = field(default_factory=dict)
    log_dropped: int = 0
    log_off: str = ""
    bans: BanEntries = field(default_factory=BanEntries)
    told: CounterReading | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def state(self) -> NodeState:
        """What the node says."""
        on_disk = (
            digest_of_all({path: digest_of(content) for path, content in self.files.items()}) if self.files else ""
        )
        edited = on_disk != self.digest
        return NodeState(
            generation=self.generation,
            digest=self.digest,
            on_disk=on_disk,
            haproxy_version=self.haproxy_version,
            agent_version="memory",
            boot_id=f"memory-{self.name}",
            workers=1 if self.generation else 0,
            serving=self.generation > 0,
            reloads=self.reloads,
            drift=("files were edited",) if edited else (),
            last_error=self.last_error,
            unavailable=self.unavailable,
            http3=self.http3,
            features=self.features,
            protocols=self.protocols,
            addresses=self.addresses,
            ticket_secrets=sha256("".join(self.ticket_secrets).encode()).hexdigest(),
            clock=time.time() + self.clock_ahead_s,
        )


_NODES: dict[str, MemoryNode] = {}
_NODES_LOCK = threading.Lock()


def memory_node(name: str) -> MemoryNode:
    """The node of this name, made when first asked for."""
    with _NODES_LOCK:
        return _NODES.setdefault(name, MemoryNode(name))


def forget_memory_nodes() -> None:
    """An empty world again, for the next test."""
    with _NODES_LOCK:
        _NODES.clear()


class MemoryDriver:
    """Speaks to a node in memory."""

    def __init__(self, target: NodeTarget) -> None:
        self._node = memory_node(urlsplit(target.url).netloc or target.name)

    def push_bundle(self, bundle: Bundle, generation: int) -> NodeState:
        """As the agent does: reach, fence, digests, refusal, switch."""
        with self._node.lock:
            self._reach()
            self._fence(generation)
            _verify(bundle)
            self._object(bundle)
            self._run(bundle, generation)
            self._node.reloads += 1
            self._node.epoch += 1
            self._node.pushes += 1
            return self._node.state()

    def check_bundle(self, bundle: Bundle, generation: int, stage: str) -> NodeState:
        """As a push, as far as that stage; what would be refused later is not seen here either."""
        with self._node.lock:
            self._reach()
            self._fence(generation)
            _verify(bundle)
            try:
                self._object(bundle)
            except Refused as refusal:
                if refusal.stage in CHECKED[: CHECKED.index(stage) + 1]:
                    raise
            self._node.checks += 1
            return self._node.state()

    def run_operations(
        self, operations: tuple[Operation, ...], bundle: Bundle, base_digest: str, generation: int
    ) -> NodeState:
        """Apply the operations to the maps; they must lead to the bundle."""
        with self._node.lock:
            self._reach()
            self._fence(generation)
            if not base_digest == self._node.digest == self._node.state().on_disk:
                raise self._refused("This node does not run the configuration that the change starts from.")
            _verify(bundle, stage="runtime")
            self._object(bundle)
            changed = _apply(self._node.files, operations, bundle)
            for path, content in bundle.files.items():
                if path.startswith(("maps/", "certs/")) and changed.get(path) != content:
                    raise self._refused(f"The operations do not lead to the wanted content of {path}.")
            self._run(bundle, generation)
            self._node.operations.extend(operations)
            return self._node.state()

    def give_ticket_secrets(self, secrets: tuple[str, ...]) -> NodeState:
        """Keep them."""
        with self._node.lock:
            self._reach()
            self._node.ticket_secrets = secrets
            return self._node.state()

    def request_certificate(self) -> str:
        """A node in memory has no key and was never enrolled."""
        raise Refused(f"{self._node.name}: a node in memory has no certificate.", stage="runtime")

    def give_certificate(self, certificate: str, authorities: str) -> str:  # noqa: ARG002 - the border's
        """As above."""
        return self.request_certificate()

    def read_state(self) -> NodeState:
        """What the node runs now."""
        with self._node.lock:
            self._reach()
            return self._node.state()

    def read_counters(self) -> CounterReading:
        """The counters that the test put there."""
        with self._node.lock:
            self._reach()
            return CounterReading(
                epoch=f"{self._node.name}-{self._node.epoch}",
                read_at=time.time(),
                rows=self._node.rows,
                latency_buckets=self._node.latency_buckets,
                admitted=self._node.admitted,
                peers=self._node.peers,
                distances_ms=self._node.distances_ms,
                in_use=self._node.in_use,
            )

    def observe(self, seen: Seen | None = None) -> Observation:
        """The changes since its last answer, to whom it gave that; a node without HAProxy has no counters."""
        with self._node.lock:
            state = self.read_state()
            clock = state.clock
            if seen is not None and seen.state == state:
                state = seen.state
            if not state.workers:
                return Observation(state, clock=clock)
            whole, before = self.read_counters(), self._node.told
            number = int(before.token.rpartition("-")[2]) + 1 if before else 1
            self._node.told = whole = replace(whole, token=f"{whole.epoch}-{number}")
            changes = before and seen and seen.token == before.token and before.epoch == whole.epoch
            return Observation(state, _changes(before, whole) if before and changes else whole, clock=clock)

    def log_segments(self, wait_s: float = 0.0) -> LogSegments:
        """What waits; an empty log is waited for as a real node does."""
        until = time.monotonic() + min(wait_s, LONGEST_LOG_WAIT_S)
        while True:
            with self._node.lock:
                self._reach()
                found = tuple(
                    LogSegment(name, lines.count(b"\n"), len(zlib.compress(lines, 1)))
                    for name, lines in self._node.log.items()
                )
                if found or time.monotonic() >= until:
                    return LogSegments(found, self._node.log_dropped, 0.0, self._node.log_off)
            time.sleep(0.01)

    def read_log_segment(self, segment_id: str) -> bytes:
        """The lines of a segment."""
        with self._node.lock:
            self._reach()
            return self._node.log.get(segment_id, b"")

    def acknowledge_log_segment(self, segment_id: str) -> None:
        """The segment goes."""
        with self._node.lock:
            self._reach()
            self._node.log.pop(segment_id, None)

    def read_bans(self) -> BanEntries:
        """What the test put there."""
        with self._node.lock:
            self._reach()
            return self._node.bans

    def lift_ban(self, table: str, key: str) -> None:
        """The entry goes."""
        with self._node.lock:
            self._reach()
            kept = tuple(each for each in self._node.bans.entries if (each.table, each.key) != (table, key))
            self._node.bans = replace(self._node.bans, entries=kept)

    def _reach(self) -> None:
        if self._node.unreachable:
            raise Unreachable(f"{self._node.name} does not answer.")

    def _fence(self, generation: int) -> None:
        if generation <= self._node.generation:
            raise Superseded(
                f"{self._node.name}: Generation {generation} is superseded: "
                f"this node already runs generation {self._node.generation}."
            )

    def _object(self, bundle: Bundle) -> None:
        if self._node.unavailable:
            raise Unavailable(f"{self._node.name}: {self._node.unavailable}")
        refusal = self._node.refusal or (self._node.refusal_for(bundle) if self._node.refusal_for else None)
        if refusal is not None:
            self._node.last_error = refusal.message
            raise refusal

    def _refused(self, message: str) -> Refused:
        self._node.last_error = message
        return Refused(f"{self._node.name}: {message}", stage="runtime")

    def _run(self, bundle: Bundle, generation: int) -> None:
        self._node.files = dict(bundle.files)
        self._node.digest = bundle.digest
        self._node.generation = generation
        self._node.last_error = ""


def _changes(before: CounterReading, whole: CounterReading) -> CounterReading:
    """What differs from the reading of before."""
    there = {(row.kind, row.object_id) for row in whole.rows}
    same = set(before.rows)
    latency = {
        pool: buckets for pool, buckets in whole.latency_buckets.items() if before.latency_buckets.get(pool) != buckets
    }
    return replace(
        whole,
        base=before.token,
        rows=tuple(row for row in whole.rows if row not in same),
        gone=tuple((row.kind, row.object_id) for row in before.rows if (row.kind, row.object_id) not in there),
        latency_buckets=latency,
    )


def _verify(bundle: Bundle, stage: str = "validate") -> None:
    """The files must have the digests that the manifest names."""
    found = {path: digest_of(content) for path, content in bundle.files.items() if path != MANIFEST}
    manifest = json.loads(bundle.files.get(MANIFEST, b"{}"))
    if manifest.get("files") != found or not bundle.digest == manifest.get("digest") == digest_of_all(found):
        raise Refused("The files do not have the digests that the manifest names.", stage=stage)


def _apply(files: Mapping[str, bytes], operations: tuple[Operation, ...], bundle: Bundle) -> dict[str, bytes]:
    """Certificates and maps after the operations, each map sorted by key."""
    changed = {path: content for path, content in files.items() if path.startswith(("maps/", "certs/"))}
    for each in operations:
        if isinstance(each, ReplaceMap | SetCertificate | UpdateCertificateList):
            changed[each.path] = bundle.files[each.path]
        elif isinstance(each, SetMapEntry | DeleteMapEntry):
            entries = dict(line.split(b" ", 1) for line in changed[each.path].splitlines())
            entries.pop(each.key.encode(), None)
            if isinstance(each, SetMapEntry):
                entries[each.key.encode()] = each.value.encode()
            changed[each.path] = b"".join(key + b" " + value + b"\n" for key, value in sorted(entries.items()))
    return changed
