"""Which failures are only of this moment: the database is away, or somebody holds what is wanted for too long.

Interfaces answer them with 503 and when to ask again. What is wrong with our own statements stays an error of ours.
"""

from __future__ import annotations

import sqlite3

from django import db

from apps.core.errors import Unavailable

# SQLSTATEs of PostgreSQL: lock_not_available, query_canceled, deadlock_detected, serialization_failure.
CROWDED = frozenset({"55P03", "57014", "40P01", "40001"})
# idle_in_transaction_session_timeout: this process was asleep for so long that it was thrown out.
THROWN_OUT = "25P03"
# SQLite has one class for everything; these words are about the moment, others about the statement.
SQLITE_CROWDED = ("is locked",)
SQLITE_AWAY = ("unable to open", "disk i/o error", "is full")

AWAY = "The database does not answer. What was confirmed before is safe; try again in a moment."
BUSY = "Somebody else is writing and holds what this needs. Nothing was changed; try again in a moment."


def unavailable(error: BaseException | None) -> Unavailable | None:
    """The refusal to answer with where it is the moment that is to blame, else None."""
    if isinstance(error, Unavailable):
        return error
    if not isinstance(error, db.Error):
        return None
    if isinstance(error.__cause__, sqlite3.Error):
        return _of_sqlite(str(error).lower()) if isinstance(error, db.OperationalError) else None
    code = getattr(error.__cause__, "sqlstate", None)
    if code in CROWDED:
        return Unavailable(BUSY)
    if code == THROWN_OUT or isinstance(error, db.OperationalError | db.InterfaceError):
        return Unavailable(AWAY)
    return None


def _of_sqlite(text: str) -> Unavailable | None:
    if any(words in text for words in SQLITE_CROWDED):
        return Unavailable(BUSY)
    return Unavailable(AWAY) if any(words in text for words in SQLITE_AWAY) else None
