"""Whether a machine is fit for its work: its HAProxy, its room for changes, its clock."""

from __future__ import annotations

from dataclasses import dataclass

from apps.compiler.haproxy_version import OLDEST, parse_version
from apps.observe.evaluate.conditions import Reason, Type, Verdict

CLOCK_TOLERANCE_S = 1.0


@dataclass(frozen=True, slots=True)
class FitnessFacts:
    """What a node that answers says of itself; `clock_ahead_s` is None where its agent does not tell the time."""

    node_id: int
    haproxy_version: str
    unavailable: str = ""
    clock_ahead_s: float | None = None
    generation: int = 0


def evaluate_fitness(facts: FitnessFacts) -> list[Verdict]:
    """Supported, TakesChanges and ClockRight of a node that answers; what it does not tell is not judged."""
    found = [_supported(facts), _takes_changes(facts)]
    if facts.clock_ahead_s is not None:
        found.append(evaluate_clock("node", facts.node_id, facts.clock_ahead_s))
    return [each for each in found if each is not None]


def unknown_fitness(node_id: int) -> list[Verdict]:
    """The same of a node that does not answer."""
    silent = "The node does not answer, so this is not known."
    types = (Type.SUPPORTED, Type.TAKES_CHANGES, Type.CLOCK_RIGHT)
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
