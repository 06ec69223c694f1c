"""The filters for what HAProxy's checks say: its codes in words, with the code on hover."""

from __future__ import annotations

import re
from typing import Any

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString

register = template.Library()
ANSWERED = "answered"
WORDS = {
    "L4OK": "connected",
    "L4TOUT": "no connection in time",
    "L4CON": "cannot connect",
    "L6OK": "TLS connected",
    "L6TOUT": "no TLS handshake in time",
    "L6RSP": "invalid TLS response",
    "L7OK": ANSWERED,
    "L7OKC": ANSWERED,
    "L7TOUT": "no response in time",
    "L7RSP": "invalid response",
    "L7STS": ANSWERED,
    "SOCKERR": "socket error",
}
# A code, perhaps with a status: `L7STS/500`; last, the space before what the check says beside it.
_CODE = re.compile(rf"\b({'|'.join(WORDS)})(?:/(\d{{3}}))?\b( (?!in \d)(?=\w))?")


@register.filter
def check_words(text: Any) -> str:
    """`a (L7STS/500)` → `a (answered 500)`, where there is room for text alone."""
    return _CODE.sub(lambda code: _said(code) + _rest(code), str(text))


@register.filter
def checks(text: Any) -> SafeString:
    """The same with each code on hover; all of it is escaped first."""
    return SafeString(
        _CODE.sub(
            lambda code: f'<abbr title="{code[0].strip()}">{_said(code)}</abbr>{_rest(code)}', conditional_escape(text)
        )
    )


def _said(code: re.Match[str]) -> str:
    words = WORDS[code[1]]
    if code[2]:
        return f"{words} {code[2]}"
    return "answered with an error" if code[1] == "L7STS" and not code[3] else words


def _rest(code: re.Match[str]) -> str:
    """What leads on to the words of the check itself: `cannot connect: refused`."""
    if not code[3]:
        return ""
    return " " if WORDS[code[1]] == ANSWERED else ": "
