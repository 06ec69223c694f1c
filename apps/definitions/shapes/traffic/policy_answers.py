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
    """A page of your own with some statuses."""

    sparse: ClassVar = True

    statuses: Annotated[
        tuple[Annotated[int, whole(400, 599)], ...] | None,
        at_most(MOST_STATUSES, "statuses"),
        Distinct(),
        SORTED,
        About("Statuses that are answered with the page.", "Statuses", example=503),
    ] = None
    content_type: Annotated[
        Annotated[str, text(grammar.content_type, "a media type", 128)] | None,
        About("The media type of the page; text/html where nothing is said.", "Content type"),
    ] = None
    body: Annotated[
        Annotated[str, text(grammar.body, "text", grammar.MAX_BODY)] | None,
        About("The page; {status} in it is replaced by the status.", "Page", example="<h1>Sorry: {status}</h1>"),
    ] = None
    intercept: Annotated[
        Boolean | None,
        About("Whether servers' own answers with these statuses are replaced, too.", "Replace servers' answers"),
    ] = None


@dataclass(frozen=True, slots=True)
class Body(model.Body, Shape):
    """What bodies of requests may be."""

    sparse: ClassVar = True

    max_bytes: Annotated[
        Annotated[int, whole(0, 1_000_000_000_000)] | None,
        About(
            "A longer body is answered with 413. Who sends more than a few kB must say the length (else 411).",
            "Longest body, bytes",
            example=10_000_000,
        ),
    ] = None
    buffered: Annotated[
        Boolean | None,
        About("Whether servers wait until a body is here, as far as it fits into a buffer (15 kB).", "Buffer bodies"),
    ] = None
