"""What asks once more, because it hits many rows at once: a table of them, and a button that does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse

from apps.core.errors import Invalid
from apps.definitions.services import delete_object
from apps.web.bulk.selecting import Noun, each_selected, reason_of, rejected, selected
from apps.web.kit.figures import Figures
from apps.web.kit.pages import PageRequest, back_to, show

Cells = Callable[[list[Any]], Iterable[Sequence[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: `title` with what will happen, a table of the rows, the words of the button, fields to send again.

    `cells` says of each row what stands below `heads`; `must_be` has to be typed first.
    """

    title: str
    text: str
    button: str
    heads: Sequence[str] = ()
    cells: Cells = lambda rows: ((),) * len(rows)
    must_be: str = ""
    sent: Mapping[str, str] = field(default_factory=dict)


def ask(request: PageRequest, noun: Noun, rows: list[Any], question: Question) -> HttpResponse:
    """Show what would be done to which rows; `seen-7` carries the version of a row that somebody sees here."""
    cells = question.cells(rows)
    listed = [
        (row, noun.label(request.actor, row), [*zip(question.heads, each, strict=True)])
        for row, each in zip(rows, cells, strict=True)
    ]
    wrong = question.must_be and "confirm" in request.POST
    context = {
        "noun": noun,
        "question": question,
        "rows": listed,
        "managed": next((row for row in rows if row.manager), None),
        "reason": reason_of(request),
        "back": back_to(request, reverse(noun.back)),
        "error": f"Type {question.must_be} to confirm." if wrong else "",
    }
    return show(request, "pages/bulk/confirm.html", context, status=422 if wrong else 200)


def now_of(figures: Figures) -> str:
    """The requests per second of now, for a cell; an old number is none."""
    return figures.requests if figures.requests and not figures.age else "unknown"


def delete_selected(
    request: PageRequest, noun: Noun, kind: str, rows: QuerySet[Any], *, text: str, heads: Sequence[str], cells: Cells
) -> HttpResponse:
    """Delete the selected rows in the versions that were shown, once somebody typed the name, or how many they are.

    `text` says what goes with them; `heads` and `cells` are those of the question.
    """
    try:
        wanted = selected(request.POST, noun)
    except Invalid as error:
        return rejected(request, noun, error.detail)
    found = list(rows.filter(pk__in=wanted))
    must_be = found[0].name if len(found) == 1 else noun.counted(len(found))
    if found and request.POST.get("confirm") != must_be:
        question = Question(
            title=f"Delete {must_be}?",
            text=text,
            button=f"Delete {noun.word}s",
            heads=heads,
            cells=cells,
            must_be=must_be,
            sent={"do": "delete"},
        )
        return ask(request, noun, found, question)
    return each_selected(request, noun, rows, partial(_delete, request, kind), "deleted")


def _delete(request: PageRequest, kind: str, row: Any) -> None:
    seen = request.POST.get(f"seen-{row.pk}", "")
    delete_object(
        actor=request.actor,
        kind=kind,
        name=row.name,
        account=row.account.name,
        expected_version=int(seen) if seen.isascii() and seen.isdecimal() and len(seen) < 10 else None,
        reason=reason_of(request),
    )
