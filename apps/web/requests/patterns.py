"""What stands out among the requests of a window: each prepared search with what it found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse
from django.urls import reverse

from apps.core.errors import Invalid
from apps.logs import selectors
from apps.logs.objectives.standing import missing_until
from apps.logs.patterns import PATTERNS
from apps.logs.searching import NotAnswered, Question
from apps.web.kit.pages import PageRequest, page, show
from apps.web.requests.asked import LENGTHS, Asked


@page
def index(request: PageRequest) -> HttpResponse:
    """All patterns, those that found something first."""
    asked = Asked.read(request.GET)
    context: dict[str, Any] = {
        "asked": asked,
        "chips": asked.chips(),
        "lengths": [(word, title) for word, (title, _) in LENGTHS.items()],
        "search": reverse("web:requests") + asked.address(),
    }
    try:
        question = asked.question(request.actor)
        context["missing"] = missing_until(question.query.end)
        context["patterns"] = sorted(_shown(question, asked), key=lambda each: not each["sentences"])
    except Invalid as error:
        return show(request, "pages/requests/patterns.html", context | {"field_errors": error.field_errors}, status=422)
    except NotAnswered as error:
        context["not_answered"] = error.detail
    return show(request, "pages/requests/patterns.html", context)


def _shown(question: Question, asked: Asked) -> Iterator[dict[str, Any]]:
    search = reverse("web:requests")
    for name, pattern in PATTERNS.items():
        found = selectors.pattern(question, name)
        named = len(pattern.fields)
        yield {
            "name": name,
            "pattern": pattern,
            "sentences": found.sentences,
            "names": pattern.columns[:named],
            "numbers": pattern.columns[named:],
            "rows": [
                (
                    search + asked.address(q=f"{asked.text} {row.words}".strip()),
                    list(zip(pattern.columns[:named], row.cells[:named], strict=True)),
                    list(zip(pattern.columns[named:], row.cells[named:], strict=True)),
                )
                for row in found.rows
            ],
        }
