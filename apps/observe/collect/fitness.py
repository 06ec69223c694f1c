"""Whether a machine is fit for its work: its HAProxy, its room for changes, its clock."""

from __future__ import annotations

from dataclasses import dataclass

from apps.compiler.model.haproxy_version import OLDEST, parse_version
from apps.drivers.proxy import protocol
from apps.drivers.proxy.protocol import lacking, understood
from apps.observe.evaluate.conditions import Reason, Type, Verdict

CLOCK_TOLERANCE_S = 1.0
_OURS = f"{protocol.OLDEST} to {protocol.NEWEST}"


@dataclass(frozen=True, slots=True)
class FitnessFacts:
    """What a node that answers says of itself; `clock_ahead_s` is None where its agent does not tell the time."""

    node_id: int
    haproxy_version: str
    unavailable: str = ""
    clock_ahead_s: float | None = None
    generation: int = 0
    agent: tuple[str, tuple[int, int]] | None = None
    """Its version, and the oldest and the newest version of the protocol that it speaks."""


def evaluate_fitness(facts: FitnessFacts) -> list[Verdict]:
    """All verdicts on the machine of a node that answers; what it does not tell is not judged."""
    found = [_supported(facts), _agent_supported(facts), _takes_changes(facts)]
    if facts.clock_ahead_s is not None:
        found.append(evaluate_clock("node", facts.node_id, facts.clock_ahead_s))
    return [each for each in found if each is not None]


def unknown_fitness(node_id: int) -> list[Verdict]:
    """The same of a node that does not answer."""
    silent = "The node does not answer, so this is not known."
    types = (Type.SUPPORTED, Type.AGENT_SUPPORTED, Type.TAKES_CHANGES, Type.CLOCK_RIGHT)
    return [Verdict("node", node_id, each, None, Reason.NOT_OBSERVED, silent) for each in types]


def _supported(facts: FitnessFacts) -> Verdict | None:
    needed = ".".join(map(str, OLDEST))
    try:
        supported = parse_version(facts.haproxy_version) >= OLDEST
    except ValueError:
        return None
    reason = Reason.VERSION_SUPPORTED if supported else Reason.VERSION_TOO_OLD
    message = f"It has HAProxy {facts.haproxy_version}."
    if not supported:
        message = (
            f"It has HAProxy {facts.haproxy_version}; Spillway needs {needed} or later. "
            "Install a newer package, or name another binary with the agent's --haproxy."
        )
    return Verdict("node", facts.node_id, Type.SUPPORTED, supported, reason, message, facts.generation)


def _agent_supported(facts: FitnessFacts) -> Verdict | None:
    if facts.agent is None:
        return None
    version, theirs = facts.agent
    named = f"Its agent {version}".rstrip()
    reason, message = Reason.AGENT_CURRENT, f"{named} speaks version {theirs[1]} of the protocol."
    if not understood(theirs):
        too_new = theirs[0] > protocol.NEWEST
        reason = Reason.AGENT_TOO_NEW if too_new else Reason.AGENT_TOO_OLD
        spoken = f"versions {theirs[0]} to {theirs[1]} of the protocol, this console {_OURS}"
        update = "Update the consoles" if too_new else "Update the agent"
        message = f"{named} speaks {spoken}, so the node gets no changes. {update}; the node serves meanwhile."
    elif lacks := lacking(theirs):
        reason, message = Reason.AGENT_OLDER, f"{named} is older than this console and {lacks}. Update the agent."
    return Verdict("node", facts.node_id, Type.AGENT_SUPPORTED, understood(theirs), reason, message, facts.generation)


def _takes_changes(facts: FitnessFacts) -> Verdict:
    reason = Reason.CHANGES_WAIT if facts.unavailable else Reason.CHANGES_TAKEN
    message = facts.unavailable or "It accepted or rejected the last change."
    return Verdict("node", facts.node_id, Type.TAKES_CHANGES, not facts.unavailable, reason, message, facts.generation)


def evaluate_clock(kind: str, object_id: int, ahead_s: float) -> Verdict:
    """Whether a machine's clock agrees with the database's, which all verdicts go by."""
    off = abs(ahead_s) > CLOCK_TOLERANCE_S
    message = "Its clock agrees with the database's."
    if off:
        side = "ahead of" if ahead_s > 0 else "behind"
        message = f"Its clock is {_spelled(abs(ahead_s))} {side} the database's. Let a time service set it."
    reason = Reason.CLOCK_OFF if off else Reason.CLOCK_AGREES
    return Verdict(kind, object_id, Type.CLOCK_RIGHT, not off, reason, message)


def _spelled(seconds: float) -> str:
    """Rough on purpose: a message that changes with each tick would be a new verdict each time."""
    if seconds >= 90:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds)} s" if seconds >= 2 else "more than 1 s"
