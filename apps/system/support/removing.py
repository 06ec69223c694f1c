"""Secrets taken out of a text: those that are known by value, and what looks like one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from apps.core.redaction import without_secrets

REMOVED = "[removed]"
LEAST = 6  # characters, below which a value would be found in everything
_LOOKS_LIKE = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?<=://)[^/\s:@\"']*:[^/\s@\"']+(?=@)"),
    re.compile(r"(?i)\b(?:bearer|basic|digest)\s+[\w.~+/=-]{6,}"),
    re.compile(r"\bsw_[a-z0-9]+_[\w-]+"),
    re.compile(r"\bgAAAA[\w=-]{20,}"),
    re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b"),
)
_NAMED = re.compile(
    r"(?i)([\w-]*(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|authorization|cookie|private[_-]?key|pepper)[\w-]*"
    r"[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&\"']+)"
)


def clean(text: str, known: Iterable[str]) -> str:
    """The text without them."""
    for value in sorted({each for each in known if len(each) >= LEAST}, key=len, reverse=True):
        text = text.replace(value, REMOVED)
    for pattern in _LOOKS_LIKE:
        text = pattern.sub(REMOVED, text)
    return without_secrets(_NAMED.sub(rf"\1{REMOVED}", text))
