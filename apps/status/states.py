"""The words of status pages: how a component is, what an incident is at, and how visitors are told; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum


class State(StrEnum):
    """How a component is, the best first; what is known to be wrong counts more than what nobody knows."""

    OPERATIONAL = "operational"
    UNKNOWN = "unknown"
    DEGRADED = "degraded"
    PARTIAL_OUTAGE = "partial_outage"
    MAJOR_OUTAGE = "major_outage"
    MAINTENANCE = "maintenance"

    @property
    def label(self) -> str:
        """What visitors read."""
        return LABELS[self]


LABELS = {
    State.OPERATIONAL: "Operational",
    State.UNKNOWN: "Unknown",
    State.DEGRADED: "Degraded",
    State.PARTIAL_OUTAGE: "Partial outage",
    State.MAJOR_OUTAGE: "Major outage",
    State.MAINTENANCE: "Under maintenance",
}
# What people can say that an incident does to components.
IMPACTS = {state.value: LABELS[state] for state in (State.DEGRADED, State.PARTIAL_OUTAGE, State.MAJOR_OUTAGE)}
STATUSES = {
    "investigating": "Investigating",
    "identified": "Identified",
    "monitoring": "Monitoring",
    "resolved": "Resolved",
}
SCHEDULED, IN_PROGRESS, COMPLETED, RESOLVED = "scheduled", "in_progress", "completed", "resolved"
PLANNED = {SCHEDULED: "Scheduled", IN_PROGRESS: "In progress", COMPLETED: "Completed"}
_ORDER = list(State)


def worst(states: Iterable[State]) -> State:
    """The worst of them; of nothing nobody knows anything."""
    return max(states, key=_ORDER.index, default=State.UNKNOWN)


def together(states: Collection[State]) -> State:
    """How a component is whose parts are so: it is out only where all of them are."""
    found = worst(states)
    if found == State.MAJOR_OUTAGE and any(state != found for state in states):
        return State.PARTIAL_OUTAGE
    return found


def overall(states: Collection[State]) -> State:
    """The state of them all: work that was planned hides nothing that is worse."""
    rest = worst(state for state in states if state != State.MAINTENANCE)
    if State.MAINTENANCE in states and _ORDER.index(rest) < _ORDER.index(State.DEGRADED):
        return State.MAINTENANCE
    return rest


def sentence(states: Collection[State]) -> str:
    """The overall state in a sentence."""
    found = overall(states)
    if not states:
        return "This page has no components yet"
    if found == State.UNKNOWN:
        return "The state of some systems is unknown" if State.OPERATIONAL in states else "The state is unknown"
    if found == State.MAJOR_OUTAGE and set(states) == {found}:
        return "Major outage"
    return {
        State.OPERATIONAL: "All systems are operational",
        State.MAINTENANCE: "Maintenance is in progress",
        State.DEGRADED: "Some systems are degraded",
    }.get(found, "Some systems have an outage")
