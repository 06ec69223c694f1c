"""What servers get instead of the path and the query: replacements with groups of a pattern, parameters."""

from __future__ import annotations

import re

from apps.compiler.grammar import matching, one_of

CACHING = {
    "no-store": "no-store",
    "no-cache": "no-cache",
    "private": "private, no-cache",
    "hour": "public, max-age=3600",
    "immutable": "public, max-age=31536000, immutable",
}
MAX_QUERY = 256
_GROUP = re.compile(r"(?<!\\)\((?!\?)")

# A new path with the groups of a pattern as `\\1` to `\\9`.
replacement = matching(
    r"/(?:[A-Za-z0-9._~+=:@&!/-]|\\[1-9]){0,255}",
    "replacement",
    r"Begin with /, and write groups of the pattern as \1 to \9.",
)
# The name of a parameter in a query, its value as it stands in a URL, and a query without its question mark.
parameter = matching(
    r"[A-Za-z0-9_.-]{1,64}", "parameter", "Use 1 to 64 letters, digits, _, . and - in the name of a parameter."
)
parameter_value = matching(
    r"(?:[A-Za-z0-9._~:@!/+-]|%[2-9A-F][0-9A-F]){0,256}",
    "parameter_value",
    "Use letters, digits, . _ ~ : @ ! / + - and %-encoded signs in the value.",
)
query = matching(
    r"(?:[A-Za-z0-9._~:@!/+=&-]|%[2-9A-F][0-9A-F]){1,256}",
    "query",
    f"Use 1 to {MAX_QUERY} letters, digits, . _ ~ : @ ! / + = & - and %-encoded signs in the query.",
)
# The beginning of a Location, with or without scheme and host.
location = matching(
    r"(?=.)(?:https?://(?:[A-Za-z0-9.-]{1,253}(?::[1-9][0-9]{0,4})?)?)?(?:/[A-Za-z0-9._~+=:@&!/-]{0,255})?",
    "location",
    "Begin with http://, https:// or /, such as http://app.internal:8080/ or /shop/.",
)
caching = one_of(CACHING)  # how long others may keep responses


def groups_of(text: str) -> int:
    """How many groups a pattern has; brackets in a class are none."""
    return len(_GROUP.findall(re.sub(r"\[(?:\\.|[^\]\\])*\]", "", text)))


def highest_group(text: str) -> int:
    """The highest group that a replacement asks for."""
    return max(map(int, re.findall(r"\\([1-9])", text)), default=0)
