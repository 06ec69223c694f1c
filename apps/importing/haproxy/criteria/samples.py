"""Sample expressions of haproxy.cfg: a fetch, its arguments, and converters behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z0-9_.\-/]+")

Call = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Sample:
    """`req.hdr(host),lower` is fetch `req.hdr` with arguments (`host`,) and converters ((`lower`, ()),)."""

    fetch: str
    args: tuple[str, ...] = ()
    converters: tuple[Call, ...] = ()

    @property
    def converter_names(self) -> tuple[str, ...]:
        """Without their arguments."""
        return tuple(name for name, _ in self.converters)


def parse_sample(text: str) -> Sample | None:
    """The expression, None for what is none."""
    calls: list[Call] = []
    at = 0
    while at < len(text):
        found = _NAME.match(text, at)
        if found is None:
            return None
        at = found.end()
        args: tuple[str, ...] = ()
        if text[at : at + 1] == "(":
            end = _closing(text, at)
            if end < 0:
                return None
            args = _arguments(text[at + 1 : end])
            at = end + 1
        calls.append((found[0], args))
        if at < len(text) and text[at] != ",":
            return None
        at += 1
    return Sample(*calls[0], tuple(calls[1:])) if calls else None


def _closing(text: str, begin: int) -> int:
    """Where the bracket that opens here is closed, -1 for nowhere."""
    depth, quote = 0, ""
    for at in range(begin, len(text)):
        sign = text[at]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if depth == 0:
                return at
    return -1


def _arguments(text: str) -> tuple[str, ...]:
    """Divided at commas outside of quotes and brackets."""
    found, depth, quote, part = [], 0, "", ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
            part += "" if not quote else sign
        elif sign in "'\"":
            quote = sign
        elif sign == "," and depth == 0:
            found.append(part.strip())
            part = ""
        else:
            depth += {"(": 1, ")": -1}.get(sign, 0)
            part += sign
    return (*found, part.strip()) if text else ()
