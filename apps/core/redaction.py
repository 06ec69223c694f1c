"""Kernel: keeps secrets that stand in paths (links of invitations, of new passwords) and tokens out of the log."""

from __future__ import annotations

import logging
import re

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
