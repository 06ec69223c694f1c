"""Selected rows: each is changed by itself, and each that is refused is named with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib import messages
from django.db.models import Model, QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.core.errors import Conflict, FieldError, Invalid, NotFound
from apps.definitions.shapes.base.writing import reference
from apps.web.kit.pages import PageRequest, back_to, show
from apps.web.kit.undoing import say_done

M = TypeVar("M", bound=Model)
# Four pages of rows; each is a transaction of its own, and somebody waits for the answer.
MOST_AT_ONCE = 200
GONE = "It is gone, or you may not see it."


@dataclass(frozen=True, slots=True)
class Noun:
    """What a row of the list is called; `page` is the name of the page of one, `back` that of the list."""

    word: str
    page: str
    back: str

    def counted(self, number: int) -> str:
        """`1 route`, `12 routes`."""
        return f"{number:,} {self.word}{'' if number == 1 else 's'}"

    def label(self, actor: Actor, row: Any) -> str:
        """The name of a row, with that of its account where it is another's."""
        return str(getattr(row, "title", "")) or reference(row, actor.account.pk)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that was left as it is, and why; `url` is empty for one that is gone."""

    name: str
    url: str
    reason: str


def selected(post: QueryDict, noun: Noun) -> list[int]:
    """The primary keys of the selected rows; what is none is left out. Raises Invalid for none, and for too many."""
    sent = post.getlist(noun.word)
    if len(sent) > MOST_AT_ONCE:
        raise Invalid([FieldError("", "too_many", f"Select at most {noun.counted(MOST_AT_ONCE)} at a time.")])
    found = [int(text) for text in sent if text.isascii() and text.isdecimal() and len(text) < 19]
    if not found:
        raise Invalid([FieldError("", "none", f"Select at least one {noun.word} first.")])
    return list(dict.fromkeys(found))


def rejected(request: PageRequest, noun: Noun, detail: str) -> HttpResponse:
    """Back to the list, which says why nothing was done."""
    messages.error(request, detail)
    return redirect(back_to(request, reverse(noun.back)))


def each_selected(
    request: PageRequest,
    noun: Noun,
    rows: QuerySet[M],
    do: Callable[[M], object],
    done: str,
    undo: Callable[[], str] = str,
) -> HttpResponse:
    """Do it to each of the selected ones among `rows`, and say so: `12 routes deleted`; then, which were refused.

    `do` raises what services raise. `undo` is asked in the end for what `say_done` takes.
    """
    try:
        wanted = selected(request.POST, noun)
    except Invalid as error:
        return rejected(request, noun, error.detail)
    found = rows.in_bulk(wanted)
    refused = []
    for pk in wanted:
        try:
            if pk not in found:
                raise NotFound(GONE)
            do(found[pk])
        except (Conflict, Invalid, NotFound) as error:
            refused.append(_refusal(request.actor, noun, pk, found.get(pk), error.detail))
    count = len(wanted) - len(refused)
    if count:
        say_done(request, f"{noun.counted(count)} {done}.", undo())
    back = back_to(request, reverse(noun.back))
    if not refused:
        return redirect(back)
    context = {
        "noun": noun,
        "of": noun.counted(len(wanted)),
        "refused": refused,
        "all_refused": not count,
        "back": back,
    }
    return show(request, "pages/bulk/refused.html", context, status=409)


def _refusal(actor: Actor, noun: Noun, pk: int, row: Any, reason: str) -> Refusal:
    if row is None:
        return Refusal(f"{noun.word} {pk}", "", reason)
    return Refusal(noun.label(actor, row), reverse(noun.page, args=[pk]), reason)


def reason_of(request: PageRequest) -> str:
    """Why, as somebody typed it in the bar."""
    return request.POST.get("reason", "").strip()[:400]
