"""Rows of lists, a page at a time: the worst first and by name within each state, or the newest first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from django.db.models import Case, Count, Expression, IntegerField, Model, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

M = TypeVar("M", bound=Model)
T = TypeVar("T")
PER_PAGE = 50


def severity(groups: Iterable[Collection[int]]) -> Expression:
    """0 for rows whose primary key is in the first group, 1 for those in the second, and so on; last all others."""
    whens = [When(pk__in=list(ids), then=Value(rank)) for rank, ids in enumerate(groups) if ids]
    return Case(*whens, default=Value(9), output_field=IntegerField())


def keyset_page(
    rows: QuerySet[M], rank: Expression, by: tuple[str, ...], after: str, size: int = PER_PAGE
) -> tuple[list[M], str | None]:
    """The next rows in the order severity, `by`; and what to say as `after` for those behind, None on the last page.

    What `after` names has no slash in it, as names and hostnames have none; anything else means the first page.
    """
    ranked: QuerySet[Any] = rows.annotate(rank=rank).order_by("rank", *by)
    worst, *texts = after.split("/")
    if len(texts) == len(by) and after.isprintable() and worst.isascii() and worst.isdecimal() and len(worst) == 1:
        ranked = ranked.filter(_behind(int(worst), dict(zip(by, texts, strict=True))))
    found = list(ranked[: size + 1])
    return found[:size], _cursor(found[size - 1], by) if len(found) > size else None


def counted(rows: QuerySet[Any], of: str) -> Expression:
    """How many of `rows` each outer row has, by their field `of`; a join would be grouped before the page is cut."""
    number = rows.order_by().values(of).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(number), 0)


def newest_page(rows: QuerySet[M], before: str, size: int) -> tuple[list[M], dict[str, Any]]:
    """The next rows, newest first; and `before` with `next_before`, the id to go on below, for the page.

    Anything but an id means the first page.
    """
    if before.isascii() and before.isdecimal() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: size + 1])
    return found[:size], {"before": before, "next_before": found[size - 1].pk if len(found) > size else None}


def first_of(rows: QuerySet[M], most: int) -> tuple[list[M], dict[str, Any]]:
    """The rows of a list that is short enough for one page; and for the page whether there are `more`."""
    found = list(rows[: most + 1])
    return found[:most], {"more": len(found) > most, "shown": most}


def _behind(rank: int, texts: Mapping[str, str]) -> Q:
    found, same = Q(rank__gt=rank), Q(rank=rank)
    for field, text in texts.items():
        found |= same & Q(**{f"{field}__gt": text})
        same &= Q(**{field: text})
    return found


def _cursor(row: Any, by: tuple[str, ...]) -> str:
    texts = []
    for path in by:
        value = row
        for step in path.split("__"):
            value = getattr(value, step)
        texts.append(str(value))
    return "/".join((str(row.rank), *texts))


def by_word(rows: Iterable[tuple[str, T]], order: Collection[str]) -> list[T]:
    """Rows with the word of their state, sorted by its rank in `order`; a word that is not there is last."""
    ranks = {word: rank for rank, word in enumerate(order)}
    return [row for _, row in sorted(rows, key=lambda each: ranks.get(each[0], len(ranks)))]
