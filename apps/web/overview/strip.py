"""The state of everything in one line: what spills, is drained, refuses, is held or fails, and the words for a wall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse

from apps.overflow.flows import Flow
from apps.overflow.reasons import NEARLY
from apps.web.kit.figures import rate
from apps.web.overview.incidents import DOWN, Incident

LANES_SAID = 2
BAD, WARN, GOOD, IDLE = "bad", "warn", "good", "idle"


@dataclass(frozen=True, slots=True)
class State:
    """One word of the strip with its colour and shape, what it is about, and where to look."""

    kind: str
    shape: str
    word: str
    text: str
    url: str


def states(flow: Flow, every: Sequence[Incident], fleets: Mapping[int, str], summary: str) -> list[State]:
    """The states that hold now, worst first; `fleets` says how each stands. Without any: that all is good."""
    overflow = reverse("web:overflow")
    live = flow if flow.at is not None and not flow.stale else None
    found = [
        *_failing(every),
        *([State(BAD, "stop", "Rejecting", f"{rate(flow.rejected_rps)}/s", overflow)] if _rejects(live) else []),
        *_held(fleets, reverse("web:fleets")),
        *([_spilling(live, overflow)] if live and _lanes(live) else []),
        *_drained(live),
    ]
    if not found and every:
        found = [State(WARN, "warn", "Needs attention", every[0].title, every[0].url)]
    if not found and flow.at is None:
        found = [State(IDLE, "unknown", "No numbers yet", "No node has reported traffic.", overflow)]
    if not found and live is None:
        found = [State(IDLE, "unknown", "Numbers are old", f"The newest is {flow.age_s or 0:.0f} s old.", overflow)]
    if not found and flow.unread:
        text = f"Nodes of {', '.join(flow.unread)} cannot be read."
        found = [State(IDLE, "unknown", "Not all is known", text, overflow)]
    return found or [State(GOOD, "good", "All good.", summary, overflow)]


def tint(found: Iterable[State]) -> str:
    """The worst colour among the states."""
    kinds = {each.kind for each in found}
    return next(kind for kind in (BAD, WARN, IDLE, GOOD) if kind in kinds)


def _failing(every: Sequence[Incident]) -> list[State]:
    down = [each for each in every if each.severity == DOWN]
    if not down:
        return []
    text = down[0].title if len(down) == 1 else f"{down[0].title} And {len(down) - 1} more."
    return [State(BAD, "bad", "Failing", text, down[0].url)]


def _rejects(flow: Flow | None) -> bool:
    return flow is not None and flow.rejected_rps > NEARLY


def _lanes(flow: Flow) -> list[str]:
    lanes = [each for each in flow.lanes if each.source_id != each.target_id and each.rps > NEARLY]
    return [
        f"{lane.source} → {lane.target} {rate(lane.rps)}/s"
        + (f" at +{lane.added_ms:.0f} ms" if lane.added_ms is not None else "")
        for lane in sorted(lanes, key=lambda lane: -lane.rps)
    ]


def _spilling(flow: Flow, url: str) -> State:
    said = _lanes(flow)
    more = f", and {len(said) - LANES_SAID} more" if len(said) > LANES_SAID else ""
    return State(WARN, "warn", "Spilling", ", ".join(said[:LANES_SAID]) + more, url)


def _held(fleets: Mapping[int, str], url: str) -> list[State]:
    found = []
    for word, kind, shape, said in (("refused", BAD, "stop", "Rejected"), ("held", WARN, "pause", "Held")):
        number = sum(state == word for state in fleets.values())
        if number:
            found.append(State(kind, shape, said, f"{number} fleet{'' if number == 1 else 's'}", url))
    return found


def _drained(flow: Flow | None) -> list[State]:
    names = [use.name for use in flow.regions if use.drained] if flow else []
    return [State(WARN, "pause", "Drained", ", ".join(names), reverse("web:regions"))] if names else []
