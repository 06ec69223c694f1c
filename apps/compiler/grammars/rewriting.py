"""What servers get instead of the path and the query: replacements with groups of a pattern, parameters."""

from __future__ import annotations

import re

from apps.compiler.grammar import GrammarError
from apps.compiler.matching import patterns

CACHING = {
    "no-store": "no-store",
    "no-cache": "no-cache",
    "private": "private, no-cache",
    "hour": "public, max-age=3600",
    "immutable": "public, max-age=31536000, immutable",
}
_REPLACEMENT = re.compile(r"/(?:[A-Za-z0-9._~+=:@&!/-]|\\[1-9]){0,255}")
_PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PARAMETER_VALUE = re.compile(r"(?:[A-Za-z0-9._~:@!/+-]|%[2-9A-F][0-9A-F]){0,256}")
MAX_QUERY = 256
_QUERY = re.compile(r"(?:[A-Za-z0-9._~:@!/+=&-]|%[2-9A-F][0-9A-F]){1,256}")
_GROUP = re.compile(r"(?<!\\)\((?!\?)")


def replacement(value: object) -> str:
    """A new path with the groups of a pattern as `\\1` to `\\9`. Raises GrammarError."""
    if isinstance(value, str) and _REPLACEMENT.fullmatch(value):
        return value
    raise GrammarError("replacement", r"Begin with /, and write groups of the pattern as \1 to \9.")


def parameter(value: object) -> str:
    """The name of a parameter in a query. Raises GrammarError."""
    if isinstance(value, str) and _PARAMETER.fullmatch(value):
        return value
    raise GrammarError("parameter", "Use 1 to 64 letters, digits, _, . and - in the name of a parameter.")


def parameter_value(value: object) -> str:
    """The value of a parameter as it stands in a URL. Raises GrammarError."""
    if isinstance(value, str) and _PARAMETER_VALUE.fullmatch(value):
        return value
    raise GrammarError("parameter_value", "Use letters, digits, . _ ~ : @ ! / + - and %-encoded signs in the value.")


def query(value: object) -> str:
    """A query as it stands in a URL, without its question mark. Raises GrammarError."""
    if isinstance(value, str) and _QUERY.fullmatch(value):
        return value
    raise GrammarError(
        "query", f"Use 1 to {MAX_QUERY} letters, digits, . _ ~ : @ ! / + = & - and %-encoded signs in the query."
    )


def groups_of(text: str) -> int:
    """How many groups a pattern has; brackets in a class are none."""
    return len(_GROUP.findall(re.sub(r"\[(?:\\.|[^\]\\])*\]", "", text)))


def highest_group(text: str) -> int:
    """The highest group that a replacement asks for."""
    return max(map(int, re.findall(r"\\([1-9])", text)), default=0)


def caching(value: object) -> str:
    """How long others may keep responses. Raises GrammarError."""
    if isinstance(value, str) and value in CACHING:
        return value
    raise GrammarError("choice", f"Use one of {', '.join(CACHING)}.")


pattern = patterns.pattern
