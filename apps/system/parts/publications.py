"""Definitions that are published in etcd for other programs."""

from __future__ import annotations

from apps.definitions.server_sources.registries import Unreadable
from apps.exporting.publishing import showing
from apps.system.parts.part import Answer, Detail, State, worst

STATES = {
    showing.State.PUBLISHED: State.OK,
    showing.State.CONFLICT: State.FAILED,
    showing.State.FAILED: State.WARNING,
    showing.State.UNKNOWN: State.UNKNOWN,
}


def publications() -> Answer:
    """Each sink that the operator's file names, as it was last looked at."""
    try:
        found = showing.shown()
    except Unreadable:
        remedy = "Make the file of SPILLWAY_REGISTRIES readable for this process, and write JSON into it."
        return Answer(State.FAILED, "The file of registries cannot be read here.", remedy)
    if not found:
        return Answer(State.OK, "None are wanted: SPILLWAY_REGISTRIES names no etcd to publish in.")
    details = tuple(Detail(str(each.sink), STATES[each.state], each.message) for each in found)
    state = worst(each.state for each in details)
    bad = [each for each in found if STATES[each.state] == state]
    said = f"{len(found)} sinks follow the definitions." if state == State.OK else f"{bad[0].sink}: {bad[0].message}"
    return Answer(state, said, bad[0].remedy, details)
