"""The proxy border: what every driver of a HAProxy node promises.

Two implementations stand behind it, chosen in `registry.py`: the agent (`agent.py`, over a Unix socket or
HTTPS with a client certificate) and an honest fake in memory (`memory.py`). `tests/conformance/` runs one
suite against both. Drivers know the world and nothing of Django.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from apps.compiler.bundle import Bundle
from apps.compiler.model.operations import Operation
from apps.drivers.proxy.protocol import SILENT

CHECKED = ("validate", "trial_run")
LONGEST_LOG_WAIT_S = 5.0


class ProxyError(Exception):
    """A node did not do what it was asked; `message` is a sentence for operators."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unreachable(ProxyError):
    """Nobody answered, or not in time: try again, the node may or may not have done it."""


class Revoked(Unreachable):
    """The node showed a certificate that was revoked; nothing was said to it."""


class Unavailable(ProxyError):
    """The node answers and cannot do it now (no time, memory, disk, or no HAProxy that fits): try again, with backoff.

    It goes on running what it ran, and says nothing about the bundle.
    """


class Superseded(ProxyError):
    """The node already runs this generation or a higher one: never try again with this number."""


class Refused(ProxyError):
    """The node looked at the bundle and said no; it goes on running what it ran.

    `stage` is validate, trial_run, switch, confirm or runtime; `line` is HAProxy's line number in haproxy.cfg where it
    named one, `output` its own words.
    """

    def __init__(self, message: str, *, stage: str, line: int | None = None, output: str = "") -> None:
        super().__init__(message)
        self.stage = stage
        self.line = line
        self.output = output


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the control plane shows enrolled nodes, and the authorities whose certificates it believes; all PEM."""

    authorities: str
    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NodeTarget:
    """How to reach a node: `unix:///path/agent.sock`, `https://host:port`, or `memory://name`.

    The three paths name PEM files of the control plane; they and `credentials` are needed for https only. Where both
    are given, the credentials are tried first, and the files for a node whose certificate is not of their authorities.
    `revoked` are the SHA-256 (hex) of certificates that count no more.
    """

    name: str
    url: str
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    credentials: Credentials | None = field(default=None, kw_only=True)
    revoked: frozenset[str] = field(default=frozenset(), kw_only=True)


@dataclass(frozen=True, slots=True)
class NodeState:
    """What a node says it runs.

    `digest` and `generation` are what the worker that answers runs, ("", 0) when nothing was ever pushed. `on_disk`
    is the digest of the files at the live path, computed from the bytes: unequal to `digest` means
    that somebody edited them. `drift` names what differs, in words. `workers` counts live haproxy workers. `addresses`
    are the static IPs that move: held or standby (VRRP), announced or withdrawn (BGP). `unavailable` says why the node
    could not take the last change; empty once it took one or refused it. `haproxy_path` is the binary that checks,
    tries and serves, and `http3` says whether it speaks that. `clock` is the time by the node, in Unix seconds; None
    where it does not tell. `ticket_secrets` is the SHA-256 (hex) of the secrets of its session tickets, one after the
    other in hex; empty where it knows of none. `certificate_sha256` (hex) and `certificate_ends` (Unix seconds)
    are of the certificate that the node showed when this was read, not what it says; empty where it shows none.
    `features` are the words of `haproxy -vv` that the binary was built with
    (`QUIC`), `tls_library` is what it runs on; both are empty where the agent does not tell. `protocols` are the oldest
    and the newest version of the protocol that it speaks (protocol.py).
    """

    generation: int
    digest: str
    on_disk: str
    haproxy_version: str
    agent_version: str
    boot_id: str
    workers: int
    serving: bool
    reloads: int
    drift: tuple[str, ...] = ()
    last_error: str = ""
    unavailable: str = ""
    haproxy_path: str = ""
    http3: bool = False
    addresses: Mapping[str, str] = field(default_factory=dict)
    ticket_secrets: str = ""
    features: tuple[str, ...] = ()
    tls_library: str = ""
    protocols: tuple[int, int] = SILENT
    clock: float | None = field(default=None, compare=False)
    certificate_sha256: str = field(default="", compare=False)
    certificate_ends: float | None = field(default=None, compare=False)


class CounterRow(NamedTuple):
    """Cumulative counters of one frontend, backend or server since the worker started.

    A tuple, because a collector makes and compares thousands each second: both take a tenth of what a data class takes.

    `kind` is frontend, backend, server, route or flow; `object_id` the model id (`lst-2`, `pool-17`, `srv-4`),
    `parent_id` the pool of a server or flow. Latencies are HAProxy's averages over its last 1 024 requests in
    milliseconds; `check` is the last check's text (`L7OK/200 in 3 ms`), `status` HAProxy's word (`UP`, `DOWN`, `MAINT`,
    `DRAIN`, `OPEN`).
    """

    kind: str
    object_id: str
    parent_id: str
    requests: int
    status_2xx: int
    status_3xx: int
    status_4xx: int
    status_5xx: int
    connections: int
    connections_now: int
    queue_now: int
    bytes_in: int
    bytes_out: int
    errors: int
    latency_ms: int
    status: str
    check: str = ""


@dataclass(frozen=True, slots=True)
class CounterReading:
    """All counters of a node at one instant; counters restart from zero when `epoch` changes.

    `read_at` is Unix seconds by the node's clock; `latency_buckets` counts requests per upper bound in ms
    (cumulative since the epoch; key -1 is "above all") per pool id where the node measures it, else empty.

    Rows of kind flow count requests that did not simply stay at home; their `object_id` is
    `<pool>/<verb>/<region>/<reason>` (see `apps/compiler/targets/haproxy/overflow/local_traffic.py`).

    `admitted` is what this node believes each node of its region admitted in the last ten seconds, by `<pool>/<node>`
    and, for overflow that came from elsewhere, `<pool>/<node>/guest`; zeros may be missing. It is this node's word for
    the others, so it differs from node to node for a moment, and for longer when peers lose each other. `peers` says
    for every other node of the region whether the two exchange counters; it is empty where the node counts alone.
    `distances_ms` is the round trip to the nearest node of each other region, by the last check of it. `in_use` are
    the shares (0–1) of its processor time (cpu) and of its connections (connections) that the node uses.

    `token` is the node's name for this answer. With a `base`, the token of an earlier answer in the same epoch, `rows`
    and `latency_buckets` are only those that differ from it, and `gone` names the rows (kind and object id) that it had
    and that are no more; without one they are all that there are. Everything else is told whole.

    An epoch that is `resumed` did not begin at zero: some of its counts may have been told in another one.
    """

    epoch: str
    read_at: float
    rows: tuple[CounterRow, ...]
    latency_buckets: Mapping[str, Mapping[int, int]]
    admitted: Mapping[str, int] = field(default_factory=dict)
    peers: Mapping[str, bool] = field(default_factory=dict)
    distances_ms: Mapping[str, int] = field(default_factory=dict)
    in_use: Mapping[str, float] = field(default_factory=dict)
    token: str = ""
    base: str = ""
    gone: tuple[tuple[str, str], ...] = ()
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader knows of a node: its state, and the token of the answer whose counters it keeps, or none."""

    state: NodeState
    token: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """State and counters of a node by one look at it; `trouble` says why the counters are missing.

    `clock` is the node's time at the look, in Unix seconds; None where it does not tell.
    """

    state: NodeState
    counters: CounterReading | None = None
    trouble: str = ""
    clock: float | None = None


@dataclass(frozen=True, slots=True)
class LogSegment:
    """A closed piece of a node's request log; `id` is the node's and is never used again, `size` is its compressed."""

    id: str
    lines: int
    size: int


@dataclass(frozen=True, slots=True)
class LogSegments:
    """What waits on a node to be stored, oldest first.

    `dropped` counts the lines that the node lost since its state directory was made: they came while nobody read, or
    their segments went when there was no more room. `oldest_s` is the age of the oldest segment. `off` says in a
    sentence why the node writes no lines; empty when it does.
    """

    segments: tuple[LogSegment, ...] = ()
    dropped: int = 0
    oldest_s: float = 0.0
    off: str = ""


@dataclass(frozen=True, slots=True)
class BanEntry:
    """A client that a limit banned: the table and key of HAProxy's entry, and in how many seconds the ban ends."""

    table: str
    key: str
    ends_in_s: float


@dataclass(frozen=True, slots=True)
class BanEntries:
    """The bans of a node, at most a thousand; `more` says that there are others."""

    entries: tuple[BanEntry, ...] = ()
    more: bool = False


class ProxyDriver(Protocol):
    """One node. Every call may raise `Unreachable`; none blocks longer than its timeout."""

    def push_bundle(self, bundle: Bundle, generation: int) -> NodeState:
        """Make the node run `bundle`: validate, trial_run, switch, reload, and wait until a new worker answers with it.

        Raises Refused or Unavailable (the node keeps its old configuration), or Superseded.
        """

    def check_bundle(self, bundle: Bundle, generation: int, stage: str) -> NodeState:
        """What `push_bundle` raises as far as this stage, one of CHECKED; the node goes on as it is.

        An agent that is older than this call runs the bundle: the state says so.
        """

    def run_operations(
        self, operations: tuple[Operation, ...], bundle: Bundle, base_digest: str, generation: int
    ) -> NodeState:
        """Change the running worker without a reload and bring the files on disk to `bundle`.

        Only valid when the node runs `base_digest`; else Refused with stage "runtime", as when an operation
        fails: the caller then pushes the whole bundle.
        """

    def give_ticket_secrets(self, secrets: tuple[str, ...]) -> NodeState:
        """Make keys of session tickets from these secrets (previous, current, next), without a reload.

        Each has 32 bytes, in hex. Raises Refused, also when the agent is older than this call, or Unavailable; the node
        may be asked again.
        """

    def request_certificate(self) -> str:
        """The request (PEM) for the next certificate of an enrolled node, with a key that never leaves it.

        The same one until its certificate was given. Raises Refused where the node was not enrolled.
        """

    def give_certificate(self, certificate: str, authorities: str) -> str:
        """Put a certificate (PEM) for that request into force, and the authorities to believe; answers its SHA-256.

        Raises Refused where it does not fit the key; the node goes on with the one that it has.
        """

    def read_state(self) -> NodeState:
        """What the node runs now."""

    def read_counters(self) -> CounterReading:
        """The node's counters now."""

    def observe(self, seen: Seen | None = None) -> Observation:
        """State and counters now, the counters only as far as they changed where the node can tell by `seen`.

        A state that did not change is the very one that was seen. The counters are whole unless they name `seen` as
        their base. Counters that cannot be read are `trouble`; for a state that cannot, raises as the others do.
        """

    def log_segments(self, wait_s: float = 0.0) -> LogSegments:
        """The closed segments; when there is none, as soon as one is closed, at the latest after `wait_s` (0 to 5)."""

    def read_log_segment(self, segment_id: str) -> bytes:
        """The lines of a segment, each with its line feed; empty when the node has no such segment (any more)."""

    def acknowledge_log_segment(self, segment_id: str) -> None:
        """The segment is stored: the node forgets it. Nothing happens when it has none of this name."""

    def read_bans(self) -> BanEntries:
        """The clients that limits banned. Raises Unavailable where no HAProxy answers, or the agent is too old."""

    def lift_ban(self, table: str, key: str) -> None:
        """The client is banned no more, on this node; nothing happens when it was not. Raises as `read_bans`."""
