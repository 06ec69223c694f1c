"""How far each sink has come where definitions are published, in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from apps.accounts.actors import Actor
from apps.core.clock import database_now
from apps.exporting.models import Publication
from apps.exporting.publishing.sinks import Sink, sinks

# A sink is looked at each minute: one of which nothing is heard for so long, nobody looks at.
SILENT = timedelta(minutes=4)
FEW = 3
WORDS = {
    "changed": "changed by somebody else",
    "deleted": "deleted by somebody else",
    "foreign": "not written by Spillway",
}


class State(StrEnum):
    """How a sink is."""

    PUBLISHED = "published"
    CONFLICT = "conflict"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Shown:
    """A sink with what is known of it; `conflict` stands for its conflicts as they are now, for who overwrites them.

    `revision` is what was published last, 0 for nothing yet.
    """

    id: int | None
    sink: Sink
    state: State
    message: str
    remedy: str = ""
    conflict: str = ""
    conflicts: tuple[Mapping[str, Any], ...] = ()
    revision: int = 0
    published_at: datetime | None = None
    looked_at: datetime | None = None


def publications(actor: Actor) -> list[Shown]:
    """Every sink that the operator's file names; none for customers. Raises Unreadable."""
    return shown() if actor.is_operator else []


def shown() -> list[Shown]:
    """The same for the platform itself. Raises Unreadable."""
    named = sinks()
    rows = {(row.registry, row.prefix): row for row in Publication.objects.defer("known")} if named else {}
    instant = database_now() if named else None
    return [_shown(each, rows.get((each.registry, each.prefix)), instant) for each in named]


def conflict_of(conflicts: Sequence[Mapping[str, Any]]) -> str:
    """What stands for exactly these conflicts, empty for none."""
    return hashlib.sha256(json.dumps(conflicts, sort_keys=True).encode()).hexdigest()[:16] if conflicts else ""


def _shown(sink: Sink, row: Publication | None, instant: datetime | None) -> Shown:
    if sink.wrong:
        return Shown(None, sink, State.FAILED, sink.wrong, "Change the file of SPILLWAY_REGISTRIES.")
    if row is None or row.tried_at is None or row.account != sink.account:
        message = "Nobody has looked at it yet."
        return Shown(row.pk if row else None, sink, State.UNKNOWN, message, "Look at the scheduler and the workers.")
    state, message, remedy = _said(sink, row)
    if instant is not None and instant - row.tried_at > SILENT:
        message = f"Nobody has looked at it since {row.tried_at:%Y-%m-%d %H:%M} UTC. Then: {message}"
        state, remedy = State.UNKNOWN, "Look at the scheduler and the workers."
    # What is not shown cannot be overwritten: an etcd that is away may have other keys by now.
    seen = row.conflicts if state is State.CONFLICT else []
    conflicts = tuple(each | {"key": sink.prefix + each["key"]} for each in seen)
    return Shown(
        *(row.pk, sink, state, message, remedy, conflict_of(seen), conflicts),
        *(row.revision, row.published_at, row.looked_at),
    )


def _said(sink: Sink, row: Publication) -> tuple[State, str, str]:
    if row.error:
        return State.FAILED, row.error, "It is tried again each minute; no change is lost."
    if row.conflicts:
        keys = [f"{sink.prefix}{each['key']} ({WORDS[each['what']]})" for each in row.conflicts[:FEW]]
        more = f" and {len(row.conflicts) - FEW} more" if len(row.conflicts) > FEW else ""
        remedy = "Nothing is published until somebody puts these keys back, or you overwrite them."
        return State.CONFLICT, f"In the way: {', '.join(keys)}{more}.", remedy
    return State.PUBLISHED, f"Revision {row.revision} with {row.objects_count} objects is there.", ""
