"""Kernel: locks by word that last until the end of the transaction, for rules that no unique constraint can hold."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from django.db import connection

# So few numbers that one transaction can hold them all; two words that share one only wait for each other.
NUMBERS = 256
SPACE = 0x5370  # apart from the advisory locks of anybody else in this database


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
