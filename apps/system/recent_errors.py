"""The newest errors that this process logged, without secrets, for the page of the system and for support."""

from __future__ import annotations

import datetime as dt
import logging
from collections import deque

from apps.core.redaction import without_secrets

MOST, LONGEST = 10, 2000
_newest: deque[dict[str, str]] = deque(maxlen=MOST)


class RecentErrors(logging.Handler):
    """Keeps what is at least an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        """One entry; the end of a traceback says most."""
        text = without_secrets(f"{record.name}: {self.format(record)}")
        at = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="seconds")
        _newest.append({"at": at, "text": text if len(text) <= LONGEST else f"…{text[-LONGEST:]}"})


def newest() -> list[dict[str, str]]:
    """The newest last."""
    return list(_newest)
