"""How the log is written: without secrets that stand in paths (links of invitations) and without tokens."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re

from apps.core.log_context import subjects
from apps.core.requests import request_id

_SECRETS = (
    re.compile(r"(/invitations/)[\w-]{8,}"),
    re.compile(r"(/sign-in/forgotten/)\w+-[\w-]{8,}"),
    re.compile(r"(\bsw_[a-z0-9]{12}_)[\w-]{8,}"),
)


def without_secrets(text: str) -> str:
    """The text with three dots where a secret stood."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\1…", text)
    return text


class WithoutSecrets(logging.Formatter):
    """Formats as usual, traceback included, and then takes secrets out of the whole text."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry of the log."""
        return without_secrets(super().format(record))


class JsonLines(WithoutSecrets):
    """One JSON object for each entry: time (UTC), level, logger, message, and what it is about as far as known."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback stands in `exception`."""
        entry = {
            "time": dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_id(),
            **subjects(),
            "exception": self.formatException(record.exc_info) if record.exc_info else "",
        }
        return without_secrets(json.dumps({name: value for name, value in entry.items() if value}, ensure_ascii=False))
