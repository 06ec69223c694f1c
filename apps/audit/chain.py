"""The chain of the audit log: every entry's digest covers the entry and the digest before, so no change goes unseen.

1. A change commits with its entry; the entry has no link yet, so that no two writers wait for each other.
2. Within a second the sweep gives links to all entries that have none, in the order of their ids: position (without
   gaps), the digest before, and the entry's own digest. Of several sweeps one gets the lock, the others pass by.
3. `verify` computes every digest again. Whoever keeps a digest elsewhere (the log has one each hour) also sees a
   chain that was cut off at its end or written anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.db import transaction

from apps.audit.models import Entry
from apps.core.concurrency.locks import try_word

BEGINNING = "0" * 64
AT_ONCE = 500
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Head:
    """The last link of the chain: how many entries it has, and the digest that stands for all of them."""

    position: int
    digest: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `verify` found: the last whole link, how many entries wait for theirs, and what is broken where."""

    head: Head
    waiting: int
    broken_at: int | None = None
    error: str = ""


def link_pending(*, limit: int = AT_ONCE) -> int:
    """Give links to at most `limit` entries that have none; never waits for another writer.

    Answers how many were linked: none as well when somebody else is at it in this moment.
    """
    if not Entry.objects.filter(position=None).exists():
        return 0
    with transaction.atomic():
        return _link(limit) if try_word("audit chain") else 0


def _link(limit: int) -> int:
    last = head()
    rows = list(Entry.objects.filter(position=None).order_by("id")[:limit])
    for row in rows:
        row.position, row.previous = last.position + 1, last.digest
        row.digest = digest_of(row)
        last = Head(row.position, row.digest)
    Entry.links.bulk_update(rows, ("position", "previous", "digest"), batch_size=200)
    return len(rows)


def head() -> Head:
    """The last link; position 0 for an empty chain."""
    row = Entry.objects.exclude(position=None).order_by("-position").only("position", "digest").first()
    return Head(row.position or 0, row.digest) if row else Head(0, BEGINNING)


def digest_of(entry: Entry) -> str:
    """SHA-256, hex, over the digest before and the canonical JSON of the other fields: sorted, UTF-8, no blanks."""
    fields = {field.attname: getattr(entry, field.attname) for field in Entry._meta.concrete_fields}
    del fields["digest"], fields["previous"]
    fields["at"] = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    text = json.dumps(_plain(fields), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(f"{entry.previous}\n{text}".encode(errors="surrogatepass")).hexdigest()


def _plain(value: Any) -> Any:
    """The value with numbers that every database gives back alike: 2.0 is 2, other fractions are text."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    return value


def verify(*, start: int = 1, expected: str = "") -> Verdict:
    """Compute every digest from position `start` on again, stop at the first that is wrong.

    `expected` is the digest that position `start` had when somebody noted it; with it a chain whose end was cut off,
    or that was written anew, is broken too.
    """
    waiting = Entry.objects.filter(position=None).count()
    last = Head(start - 1, "")
    for row in _from(start):
        if error := _error(row, last, start, expected):
            return Verdict(last, waiting, last.position + 1, error)
        last = Head(last.position + 1, row.digest)
    if last.position < start and (expected or start > 1):
        return Verdict(head(), waiting, start, f"there is no such position, the chain ends at {head().position}")
    return Verdict(last if last.digest else Head(0, BEGINNING), waiting)


def _from(start: int) -> Iterator[Entry]:
    """Every linked entry from this position on, a batch in memory at a time."""
    while True:
        batch = list(Entry.objects.filter(position__gte=start).order_by("position")[:_BATCH])
        yield from batch
        if len(batch) < _BATCH:
            return
        start = (batch[-1].position or 0) + 1


def _error(row: Entry, last: Head, start: int, expected: str) -> str:
    """What is wrong with a link after `last`, empty when it is right."""
    first = row.position == start
    if row.position != last.position + 1:
        return f"an entry is missing, the next one has position {row.position}"
    if expected and first and row.digest != expected:
        return f"the digest is {row.digest}, not the expected one"
    before = last.digest or (BEGINNING if start == 1 else row.previous)
    if row.previous != before:
        return f"entry {row.pk} does not follow the one before"
    if row.digest != digest_of(row):
        return f"entry {row.pk} was changed after it was linked"
    return ""
