"""The shapes of a policy's blocks that decide how requests are answered: pages of errors, bounds of bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler import grammar
from apps.compiler.model import policy as model
from apps.definitions.shapes.base.shape import SORTED, About, Distinct, Shape
from apps.definitions.shapes.base.words import Boolean, at_most, text, whole

MOST_STATUSES = 20


@dataclass(frozen=True, slots=True)
class ErrorPages(model.ErrorPages, Shape):
    """Your own page for some statuses."""

    sparse: ClassVar = True

    statuses: Annotated[
        tuple[Annotated[int, whole(400, 599)], ...] | None,
        at_most(MOST_STATUSES, "statuses"),
        Distinct(),
        SORTED,
        About("Statuses that get the page.", "Statuses", example=503),
    ] = None
    content_type: Annotated[
        Annotated[str, text(grammar.content_type, "a media type", 128)] | None,
        About("The media type of the page. Default: text/html.", "Content type"),
    ] = None
    body: Annotated[
        Annotated[str, text(grammar.body, "text", grammar.MAX_BODY)] | None,
        About("The page; {status} in it is replaced by the status.", "Page", example="<h1>Sorry: {status}</h1>"),
    ] = None
    intercept: Annotated[
        Boolean | None,
        About("Whether the page also replaces responses of servers with these statuses.", "Replace server responses"),
    ] = None


@dataclass(frozen=True, slots=True)
class Body(model.Body, Shape):
    """Limits of request bodies."""

    sparse: ClassVar = True

    max_bytes: Annotated[
        Annotated[int, whole(0, 1_000_000_000_000)] | None,
        About(
            "A longer body gets 413. A body of more than a few kB needs a Content-Length (otherwise it gets 411).",
            "Longest body, bytes",
            example=10_000_000,
        ),
    ] = None
    buffered: Annotated[
        Boolean | None,
        About(
            "Whether servers get a request only when its body has arrived, as far as it fits a buffer (15 kB).",
            "Buffer bodies",
        ),
    ] = None
