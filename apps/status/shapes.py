"""What people send to write an incident, plan maintenance, or tell how it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import About, Distinct, Shape
from apps.definitions.shapes.base.words import Instant, Title, at_most, one_of, text
from apps.definitions.shapes.operations.status_page import MOST_COMPONENTS
from apps.status.states import IMPACTS, STATUSES

LONGEST = 2000


def _plain(value: object) -> str:
    """Several lines of plain text; signs that steer a terminal or turn the direction of reading have no place in it."""
    found = value.replace("\r\n", "\n").strip() if isinstance(value, str) else ""
    if not found or len(found) > LONGEST or not found.replace("\n", "").isprintable():
        raise GrammarError("text", f"Write 1 to {LONGEST} printable characters; lines may end.")
    return found


_TEXT = text(_plain, "plain text", LONGEST)
_STATUS, _IMPACT = one_of(labels=STATUSES), one_of(labels=IMPACTS)


@dataclass(frozen=True, slots=True)
class IncidentSpec(Shape):
    """Something that visitors have to know; with `ends_at` it is planned maintenance."""

    title: Annotated[Title, About("What happens, in a few words.", "Title", "", missing="Say what happens.")]
    text: Annotated[
        str,
        _TEXT,
        About("What visitors read, as plain text.", "Text", "Plain text.", missing="Write something for visitors."),
    ]
    components: Annotated[
        tuple[Title, ...],
        at_most(MOST_COMPONENTS, "components in one incident"),
        Distinct(),
        About("The components of the page that it touches.", "Components"),
    ] = ()
    impact: Annotated[
        Annotated[str, _IMPACT] | None,
        About("How it leaves them. Default: degraded. Maintenance has none.", "Impact", ""),
    ] = None
    status: Annotated[
        Annotated[str, _STATUS] | None,
        About("What it is at. Default: investigating. Maintenance has none: it goes by the clock.", "Status", ""),
    ] = None
    begins_at: Annotated[Instant | None, About("When it begins. Default: now.", "Begins (UTC)")] = None
    ends_at: Annotated[
        Instant | None, About("When planned maintenance ends. Without it, this is an incident.", "Ends (UTC)")
    ] = None

    def contradictions(self) -> Iterator[FieldError]:
        """Planned maintenance has a beginning and an end, and nothing else to say."""
        if self.ends_at is None:
            return
        for name in ("impact", "status"):
            if getattr(self, name) is not None:
                yield FieldError(f"/{name}", "planned", f"Leave {name} out: with ends_at this is planned maintenance.")
        if self.begins_at is None:
            yield FieldError("/begins_at", "missing", "Say when the maintenance begins.")
        elif self.ends_at <= self.begins_at:
            yield FieldError("/ends_at", "order", "End after the beginning.")


@dataclass(frozen=True, slots=True)
class UpdateSpec(Shape):
    """What is told next."""

    text: Annotated[
        str,
        _TEXT,
        About("What visitors read, as plain text.", "Text", "Plain text.", missing="Write something for visitors."),
    ]
    status: Annotated[
        Annotated[str, _STATUS] | None,
        About("What it is at now. Default: as before. Of maintenance only resolved: it is over.", "Status", ""),
    ] = None
    impact: Annotated[
        Annotated[str, _IMPACT] | None,
        About("How it leaves its components now. Default: as before.", "Impact", ""),
    ] = None
