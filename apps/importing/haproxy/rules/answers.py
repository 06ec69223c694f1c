"""Rules of `http-response` and `http-after-response`, and the `rsp` words of 1.x."""

from __future__ import annotations

import re

from apps.compiler import header_text
from apps.compiler.grammar import GrammarError
from apps.importing.haproxy.rules.formats import as_header_text
from apps.importing.haproxy.rules.requests import Read, change

_HEADER = re.compile(r"\^?([A-Za-z0-9-]+):?[\s\\]*(.*)", re.DOTALL)


def read_response(action: str, words: tuple[str, ...]) -> Read | None:
    """What an action of `http-response` does; None for one that is not read here."""
    if action in ("set-header", "add-header") and len(words) > 1:
        return response_header(words[0], " ".join(words[1:]), action.partition("-")[0])
    if action == "del-header" and words:
        return _removed(words)
    if action == "allow":
        return [], ""
    if action == "replace-header" and words and words[0].lower() in ("server", "x-powered-by"):
        return [change("response_headers", "remove", words[0])], "different:The header is removed instead."
    return None


def response_header(name: str, value: str, operation: str) -> Read:
    """A header of responses."""
    try:
        header_text.response_header(name)
    except GrammarError as error:
        return [], error.message
    if value.strip() in ("", '""'):
        return [change("response_headers", "remove", name)], ""
    text = as_header_text(value.strip())
    if text is None:
        return [], f"The value of {name} is made of what header texts have no variable for."
    return [change("response_headers", operation, (name, text))], ""


def _removed(words: tuple[str, ...]) -> Read:
    if "-m" in words[1:]:
        return [], "Headers are removed by their whole name; list them."
    try:
        header_text.response_header(words[0])
    except GrammarError as error:
        return [], error.message
    return [change("response_headers", "remove", words[0])], ""


def read_old(keyword: str, words: tuple[str, ...]) -> Read | None:
    """`rspadd`, `rspdel` and `rspidel`."""
    found = _HEADER.fullmatch(words[0]) if words else None
    if found is None:
        return None
    if keyword == "rspadd":
        return response_header(found[1], found[2], "add")
    if keyword in ("rspdel", "rspidel"):
        return _removed((found[1],))
    return None
