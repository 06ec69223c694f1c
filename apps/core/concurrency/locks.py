"""Locks by word that last until the end of the transaction, for rules that no unique constraint can hold."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

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
