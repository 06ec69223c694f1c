"""What the request log may keep of a request, and of how many."""

from __future__ import annotations

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError

ALL, ERRORS, SAMPLED, NONE = "all", "errors", "sampled", "none"
WHICH = {ALL: "All requests", ERRORS: "Errors only", SAMPLED: "A sample", NONE: "None"}
ONE_IN = (2, 100_000)
USUAL_ONE_IN = 100
one_in = grammar.between(*ONE_IN)  # one request in so many has a line
MOST_HEADERS = 8
SECRET = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "x-spillway-test"})


def which(value: object) -> str:
    """Which requests have a line."""
    if not isinstance(value, str) or value not in WHICH:
        raise GrammarError("choice", f"Choose one of {', '.join(WHICH)}.")
    return value


def header(value: object) -> str:
    """A request header whose value is kept."""
    text = grammar.header_shape(value)
    if text.lower() in SECRET:
        raise GrammarError("header_secret", f"Choose another header; {text!r} holds secrets.")
    return text
