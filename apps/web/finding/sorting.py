"""Lists that are longer than a page: sorted by one column in the database, and what narrows them.

A table that fits on one page is sorted in the page (static/js/tables.js), with the same word in the URL.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

from apps.web.kit.worst_first import PER_PAGE

M = TypeVar("M", bound=Model)
MAX_CURSOR = 4000
Key = list[Any]


@dataclass(frozen=True, slots=True)
class Sorting:
    """How rows are sorted: `columns` are the heads that can be chosen with the fields behind each, all of them texts.

    Each is backed by an index, or its table is small. Nothing chosen means the order that the list has of its own.
    """

    columns: Mapping[str, tuple[str, ...]]
    head: str = ""
    down: bool = False

    @classmethod
    def asked(cls, columns: Mapping[str, tuple[str, ...]], text: str) -> Sorting:
        """By `?sort=Pool` or `?sort=-Pool`; what is no head of these chooses nothing."""
        head = text.removeprefix("-")
        return cls(columns, head, text.startswith("-")) if head in columns else cls(columns)

    @property
    def fields(self) -> tuple[str, ...]:
        """What the rows are sorted by; the last one makes each place unique."""
        return (*self.columns[self.head], "pk")


def sorted_page(rows: QuerySet[M], sorting: Sorting, after: str, size: int = PER_PAGE) -> tuple[list[M], str | None]:
    """The next rows in the order that was chosen, and what to say as `after` for those behind; None on the last page.

    Anything but such a text means the first page.
    """
    fields, way = sorting.fields, "-" if sorting.down else ""
    rows = rows.order_by(*(f"{way}{field}" for field in fields))
    key = _read(after, len(fields))
    if key:
        rows = rows.filter(_behind(fields, key, "lt" if sorting.down else "gt"))
    found = list(rows[: size + 1])
    return found[:size], _written(found[size - 1], fields) if len(found) > size else None


def _behind(fields: tuple[str, ...], key: Key, way: str) -> Q:
    """Rows behind the key; the first condition is for the index."""
    found, same = Q(), Q()
    for field, value in zip(fields, key, strict=True):
        found |= same & Q(**{f"{field}__{way}": value})
        same &= Q(**{field: value})
    return Q(**{f"{fields[0]}__{way}e": key[0]}) & found


def _written(row: Any, fields: tuple[str, ...]) -> str:
    values = []
    for path in fields:
        value = row
        for step in path.split("__"):
            value = getattr(value, step)
        values.append(value)
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def _read(text: str, length: int) -> Key | None:
    """The values of a cursor: texts, then an id."""
    if not text or len(text) > MAX_CURSOR:
        return None
    try:
        key = json.loads(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        return None
    if not isinstance(key, list) or len(key) != length or not all(type(each) is str for each in key[:-1]):
        return None
    fits = type(key[-1]) is int and 0 <= key[-1] < 2**63 and all(each.isprintable() for each in key[:-1])
    return key if fits else None


@dataclass(frozen=True, slots=True)
class Chip:
    """One filter that narrows a list: its name in the URL, and what people call it and its value."""

    name: str
    label: str
    value: str


def chips(query: Mapping[str, Any], labels: Mapping[str, str], words: Mapping[str, str] | None = None) -> list[Chip]:
    """Each filter of these that says something; `words` are what values of closed lists are called."""
    said = [(name, label, str(query.get(name, "")).strip()[:253]) for name, label in labels.items()]
    return [Chip(name, label, (words or {}).get(value, value)) for name, label, value in said if value]
