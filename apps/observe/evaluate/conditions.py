"""Facts in, verdicts out; every reason that there is stands in this file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    """What a verdict is about. Drifted, ErrorsHigh and QueueGrowing are good when false, the others when true."""

    REACHABLE = "Reachable"
    SERVING = "Serving"
    DRIFTED = "Drifted"
    HEALTHY = "Healthy"
    ERRORS_HIGH = "ErrorsHigh"
    QUEUE_GROWING = "QueueGrowing"
    UP = "Up"
    COUNTING = "Counting"
    LIMIT_FITS = "LimitFits"
    LIMIT_MEASURED = "LimitMeasured"
    SUPPORTED = "Supported"
    AGENT_SUPPORTED = "AgentSupported"
    TAKES_CHANGES = "TakesChanges"
    CLOCK_RIGHT = "ClockRight"
    KEYS_FETCHED = "KeysFetched"
    REVOCATION_LISTS_CURRENT = "RevocationLists"
    POOLS_SHARED = "PoolsShared"
    CERTIFICATE_VALID = "CertificateValid"
    SERVERS_FOUND = "ServersFound"


class Reason(StrEnum):
    """Why; the closed list."""

    ANSWERS = "Answers"
    DOES_NOT_ANSWER = "DoesNotAnswer"
    NOT_OBSERVED = "NotObserved"
    WORKER_ANSWERS = "WorkerAnswers"
    NO_WORKER = "NoWorker"
    NOTHING_PUSHED = "NothingPushed"
    AS_PUSHED = "AsPushed"
    FILES_EDITED = "FilesEdited"
    ALL_SERVERS_UP = "AllServersUp"
    SOME_SERVERS_DOWN = "SomeServersDown"
    REGION_WITHOUT_SERVERS = "RegionWithoutServers"
    NO_SERVER_UP = "NoServerUp"
    NO_SERVERS = "NoServers"
    FEW_ERRORS = "FewErrors"
    MANY_ERRORS = "ManyErrors"
    QUEUE_SHORT = "QueueShort"
    QUEUE_GROWS = "QueueGrows"
    CHECK_PASSES = "CheckPasses"
    CHECK_FAILS = "CheckFails"
    NODES_DISAGREE = "NodesDisagree"
    DRAINING = "Draining"
    MAINTENANCE = "Maintenance"
    UNCHECKED = "Unchecked"
    PEERS_AGREE = "PeersAgree"
    PEER_LOST = "PeerLost"
    SUMS_DIFFER = "SumsDiffer"
    LIMIT_FITS = "LimitFits"
    LIMIT_ALWAYS_REACHED = "LimitAlwaysReached"
    LIMIT_NEVER_REACHED = "LimitNeverReached"
    MEASURED_LATELY = "MeasuredLately"
    MEASUREMENT_STALE = "MeasurementStale"
    VERSION_SUPPORTED = "VersionSupported"
    VERSION_TOO_OLD = "VersionTooOld"
    AGENT_CURRENT = "AgentCurrent"
    AGENT_OLDER = "AgentOlder"
    AGENT_TOO_OLD = "AgentTooOld"
    AGENT_TOO_NEW = "AgentTooNew"
    CHANGES_TAKEN = "ChangesTaken"
    CHANGES_WAIT = "ChangesWait"
    CLOCK_AGREES = "ClockAgrees"
    CLOCK_OFF = "ClockOff"
    KEY_SET_FETCHED = "KeySetFetched"
    KEY_SET_FAILS = "KeySetFails"
    REVOCATION_LISTS_CURRENT = "RevocationListsCurrent"
    REVOCATION_LIST_ENDS = "RevocationListEnds"
    REVOCATION_LIST_ENDED = "RevocationListEnded"
    POOL_TAKEN_BACK = "PoolTakenBack"
    CERTIFICATE_VALID = "CertificateValid"
    CERTIFICATE_ENDS = "CertificateEnds"
    CERTIFICATE_ENDED = "CertificateEnded"
    CERTIFICATE_REVOKED = "CertificateRevoked"
    SOURCE_ANSWERS = "SourceAnswers"
    SOURCE_FAILS = "SourceFails"


# What makes a verdict a problem, and how bad it is: 1 is down, 3 is worth a look.
SEVERITY = {
    Reason.DOES_NOT_ANSWER: 1,
    Reason.NO_WORKER: 1,
    Reason.NO_SERVER_UP: 1,
    Reason.NO_SERVERS: 1,
    Reason.REGION_WITHOUT_SERVERS: 1,
    Reason.REVOCATION_LIST_ENDED: 1,
    Reason.POOL_TAKEN_BACK: 1,
    Reason.CERTIFICATE_ENDED: 1,
    Reason.CERTIFICATE_REVOKED: 1,
    Reason.CERTIFICATE_ENDS: 2,
    Reason.REVOCATION_LIST_ENDS: 2,
    Reason.MANY_ERRORS: 2,
    Reason.SOME_SERVERS_DOWN: 2,
    Reason.FILES_EDITED: 2,
    Reason.PEER_LOST: 2,
    Reason.VERSION_TOO_OLD: 2,
    Reason.AGENT_TOO_OLD: 2,
    Reason.AGENT_TOO_NEW: 2,
    Reason.CHANGES_WAIT: 2,
    Reason.KEY_SET_FAILS: 2,
    Reason.SOURCE_FAILS: 2,
    Reason.QUEUE_GROWS: 3,
    Reason.SUMS_DIFFER: 3,
    Reason.LIMIT_ALWAYS_REACHED: 3,
    Reason.LIMIT_NEVER_REACHED: 3,
    Reason.MEASUREMENT_STALE: 3,
    Reason.CLOCK_OFF: 3,
}
ERRORS_SHARE = 0.05
ERRORS_MINIMUM = 20  # responses, below which a share says nothing
QUEUE_MINIMUM = 5
UNRESOLVED = "MAINT (resolution)"
_TOOK = re.compile(r" in \d+ ms\b")


def without_times(check: str) -> str:
    """The text of a check without how long it took, which differs each time."""
    return _TOOK.sub("", check)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One condition as it should be now; status None means unknown."""

    kind: str
    object_id: int
    type: Type
    status: bool | None
    reason: Reason
    message: str
    generation: int = 0


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is known of a node: `answers` is None when nobody looked; the rest is its last report."""

    node_id: int
    answers: bool | None
    contact_error: str = ""
    generation: int = 0
    serving: bool = False
    drift: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server as fresh readings of the nodes of its region show it: HAProxy's status words, the last check text."""

    server_id: int
    name: str
    region: str
    statuses: tuple[str, ...]
    check: str = ""


def evaluate_node(facts: NodeFacts) -> list[Verdict]:
    """Reachable, Serving and Drifted of a node; a node that does not answer leaves the last two unknown."""
    node = ("node", facts.node_id)
    if facts.answers is None:
        unknown = "Nobody has looked at this node for a while."
        return [Verdict(*node, each, None, Reason.NOT_OBSERVED, unknown) for each in NODE_TYPES]
    if not facts.answers:
        silent = "The node does not answer, so this is not known."
        return [
            Verdict(*node, Type.REACHABLE, False, Reason.DOES_NOT_ANSWER, facts.contact_error or "No answer."),
            Verdict(*node, Type.SERVING, None, Reason.NOT_OBSERVED, silent),
            Verdict(*node, Type.DRIFTED, None, Reason.NOT_OBSERVED, silent),
        ]
    return [
        Verdict(*node, Type.REACHABLE, True, Reason.ANSWERS, "The agent answers.", facts.generation),
        _serving(facts),
        _drifted(facts),
    ]


NODE_TYPES = (Type.REACHABLE, Type.SERVING, Type.DRIFTED)


def _serving(facts: NodeFacts) -> Verdict:
    if facts.serving:
        status, reason, message = True, Reason.WORKER_ANSWERS, "A worker answers with the configuration it was given."
    elif not facts.generation:
        status, reason, message = False, Reason.NOTHING_PUSHED, "No revision has been pushed to this node yet."
    else:
        status, reason, message = False, Reason.NO_WORKER, facts.error or "No HAProxy worker answers."
    return Verdict("node", facts.node_id, Type.SERVING, status, reason, message, facts.generation)


def _drifted(facts: NodeFacts) -> Verdict:
    message = "; ".join(facts.drift) if facts.drift else "The files on the node match the pushed revision."
    reason = Reason.FILES_EDITED if facts.drift else Reason.AS_PUSHED
    return Verdict("node", facts.node_id, Type.DRIFTED, bool(facts.drift), reason, message, facts.generation)


def server_word(status: str) -> str:
    """HAProxy's status (`UP`, `UP 1/3`, `DOWN`, `MAINT (via …)`, `DRAIN`, `no check`) as one of our words.

    A server whose name leads nowhere is down: nobody took it out.
    """
    if status == UNRESOLVED:
        return "down"
    first = status.split(" ", 1)[0].upper()
    words = {"UP": "up", "OPEN": "up", "DOWN": "down", "NOLB": "drain", "DRAIN": "drain", "MAINT": "maintenance"}
    return "unchecked" if status.lower() == "no check" else words.get(first, "unknown")


def evaluate_server(facts: ServerFacts) -> Verdict:
    """Whether a server takes traffic, by all nodes that see it."""
    words = {server_word(status) for status in facts.statuses}
    check = without_times(facts.check)
    said = f"Last check: {check}." if check else "No check has answered yet."
    if UNRESOLVED in facts.statuses:
        said = f"It cannot be reached: {check}." if check else "Its name has no address."
    status: bool | None
    if not words or words == {"unknown"}:
        status, reason, message = None, Reason.NOT_OBSERVED, "No node reports on this server."
    elif words == {"down"}:
        status, reason, message = False, Reason.CHECK_FAILS, said
    elif "down" in words:
        status, reason, message = False, Reason.NODES_DISAGREE, f"Some nodes reach it, others do not. {said}"
    elif "maintenance" in words:
        status, reason, message = False, Reason.MAINTENANCE, "In maintenance."
    elif "drain" in words:
        status, reason, message = False, Reason.DRAINING, "Draining: finishes what it has."
    elif "unchecked" in words:
        status, reason, message = None, Reason.UNCHECKED, "Has no health check, so nobody knows whether it is up."
    else:
        status, reason, message = True, Reason.CHECK_PASSES, "Its check passes."
    return Verdict("server", facts.server_id, Type.UP, status, reason, message)


_TAKE_SOME = (Reason.NODES_DISAGREE, Reason.UNCHECKED)


def evaluate_pool(pool_id: int, servers: Sequence[ServerFacts]) -> Verdict:
    """Whether a pool can serve, by its servers in all regions; servers that people took out are no failure.

    Servers that nothing checks take traffic, and whether they answer it nobody knows.
    """
    verdicts = [(server, evaluate_server(server)) for server in servers]
    seen = [pair for pair in verdicts if pair[1].reason is not Reason.NOT_OBSERVED]
    wanted = [pair for pair in seen if pair[1].reason not in (Reason.MAINTENANCE, Reason.DRAINING)]
    down = [pair for pair in wanted if pair[1].status is False]
    usable = [server for server, verdict in wanted if verdict.status or verdict.reason in _TAKE_SOME]
    status: bool | None
    if not servers:
        status, reason, message = False, Reason.NO_SERVERS, "It has no servers."
    elif not seen:
        status, reason, message = None, Reason.NOT_OBSERVED, "No node reports on this pool."
    elif not usable:
        status, reason, message = False, Reason.NO_SERVER_UP, _no_server(down)
    elif lost := _regions_lost(seen, usable):
        where = " and ".join(lost)
        status, reason, message = False, Reason.REGION_WITHOUT_SERVERS, f"No server is up in {where}. {_list(down)}"
    elif down:
        message = f"{len(down)} of {len(wanted)} servers {'is' if len(down) == 1 else 'are'} down: {_list(down)}"
        status, reason = False, Reason.SOME_SERVERS_DOWN
    elif any(verdict.reason is Reason.UNCHECKED for _, verdict in wanted):
        status, reason, message = None, Reason.UNCHECKED, "No health check tells whether its servers are up."
    else:
        status, reason, message = True, Reason.ALL_SERVERS_UP, _all_up(len(wanted))
    return Verdict("pool", pool_id, Type.HEALTHY, status, reason, message.strip())


def _all_up(count: int) -> str:
    return {1: "The only server is up.", 2: "Both servers are up."}.get(count, f"All {count} servers are up.")


def _no_server(down: Sequence[tuple[ServerFacts, Verdict]]) -> str:
    return f"No server is up: {_list(down)}" if down else "No server is up: all are in maintenance or drained."


def _regions_lost(seen: Sequence[tuple[ServerFacts, Verdict]], usable: Collection[ServerFacts]) -> list[str]:
    return sorted({server.region for server, _ in seen} - {server.region for server in usable})


def _list(down: Sequence[tuple[ServerFacts, Verdict]], most: int = 3) -> str:
    names = [f"{server.name} ({without_times(server.check) or 'no check yet'})" for server, _ in down[:most]]
    more = f" and {len(down) - most} more" if len(down) > most else ""
    return ", ".join(names) + more + ("." if names else "")


def evaluate_errors(pool_id: int, responses: int, failed: int) -> Verdict:
    """Whether the last minute had too many 5xx among its responses."""
    if responses >= ERRORS_MINIMUM and failed / responses >= ERRORS_SHARE:
        # Whole per cents in steps of five: the message must not change with each tick.
        share = int(100 * failed / responses) // 5 * 5
        message = f"More than {share} % of the responses of the last minute are 5xx."
        return Verdict("pool", pool_id, Type.ERRORS_HIGH, True, Reason.MANY_ERRORS, message)
    return Verdict("pool", pool_id, Type.ERRORS_HIGH, False, Reason.FEW_ERRORS, "Few or no responses are 5xx.")


def evaluate_queue(pool_id: int, lengths: Sequence[int]) -> Verdict:
    """Whether the queue grew over the last minute; `lengths` in order of time."""
    grows = len(lengths) >= 3 and lengths[-1] >= QUEUE_MINIMUM and lengths[-1] > 2 * lengths[0]
    if grows and all(later >= earlier for earlier, later in itertools.pairwise(lengths)):
        message = "More requests wait for a server with each ten seconds."
        return Verdict("pool", pool_id, Type.QUEUE_GROWING, True, Reason.QUEUE_GROWS, message)
    return Verdict("pool", pool_id, Type.QUEUE_GROWING, False, Reason.QUEUE_SHORT, "No queue grows.")
