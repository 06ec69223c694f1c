"""Locks that last until the end of the transaction, for rules that no constraint can hold: by word, and against
the deletion of rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection

# So few numbers that one transaction can hold them all; two words that share one only wait for each other.
NUMBERS = 256
SPACE = 0x5370  # apart from the advisory locks of anybody else in this database
TRIED_SPACE = 0x5371


def lock_words(words: Iterable[str]) -> None:
    """Wait until no other transaction holds any of the words, then hold them until commit.

    The numbers are taken in ascending order, so two transactions never wait for each other in a circle. SQLite
    has one writer at a time (immediate transactions) and needs nothing.
    """
    if connection.vendor != "postgresql":
        return
    numbers = sorted({zlib.crc32(word.encode()) % NUMBERS for word in words})
    with connection.cursor() as cursor:
        for number in numbers:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [SPACE, number])


def try_word(word: str) -> bool:
    """Hold the word until the end of the transaction if nobody else does; never waits, and says whether it is held."""
    if connection.vendor != "postgresql":
        return True  # the immediate transaction that we are in is the only one that writes
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [TRIED_SPACE, zlib.crc32(word.encode()) % 2**31])
        row = cursor.fetchone()
    return bool(row and row[0])


def keep_rows(wanted: Mapping[type[Any], Iterable[int]]) -> set[tuple[type[Any], int]]:
    """Let nobody delete these rows (ids of each model) until commit, and answer which of them are gone.

    One query for all, in the order of the models and of their ids. It waits for those that hold a row to delete it
    (FOR UPDATE), and for nobody that changes it. SQLite has one writer at a time and needs nothing.
    """
    ids = {model: set(pks) for model, pks in wanted.items()}
    if connection.vendor != "postgresql" or not any(ids.values()):
        return set()
    models = [model for model, pks in ids.items() if pks]
    tables = [connection.ops.quote_name(model._meta.db_table) for model in models]
    kept = [
        f"kept{number} AS (SELECT id FROM {table} WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE)"  # noqa: S608 - ours
        for number, table in enumerate(tables)
    ]
    found = [f"SELECT {number}, id FROM kept{number}" for number in range(len(models))]  # noqa: S608 - numbers
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {', '.join(kept)} {' UNION ALL '.join(found)}", [sorted(ids[model]) for model in models])
        there = {(models[number], pk) for number, pk in cursor.fetchall()}
    return {(model, pk) for model in models for pk in ids[model]} - there
