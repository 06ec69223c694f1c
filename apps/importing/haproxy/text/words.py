r"""Divides a line of haproxy.cfg into words: quotes, backslashes, comments and variables as HAProxy reads them.

Outside of quotes a backslash takes the next sign as it is (`\n`, `\r`, `\t` and `\x41` stand for signs), and `#` ends
the line. Single quotes keep everything; in double quotes a backslash escapes `"`, `\`, `$` and the signs above, and
`${NAME}`, `${NAME-default}` and `$NAME` are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAMED = {"n": "\n", "r": "\r", "t": "\t"}
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?:-([^}]*))?(?:\[\*\])?\}|([A-Za-z_][A-Za-z0-9_]*))")
_OF_PROCESS = re.compile(r"\benv\((\w+)\)")
_HEX = re.compile(r"x([0-9A-Fa-f]{2})")


class Words:
    """The words of one line, and the variables of it that nobody gave; `open_quote` where a quote does not end."""

    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self.text = text
        self.environment = environment
        self.at = 0
        self.found: list[str] = []
        self.unknown: list[str] = []
        self.open_quote = False
        self._word: str | None = None
        self._read()
        if "env(" in text:
            self.found = [_OF_PROCESS.sub(self._constant, word) for word in self.found]

    def _constant(self, found: re.Match[str]) -> str:
        """`env(NAME)` as a text that is known, where no sign of it ends the text."""
        value = self._value(found[1], None)
        return found[0] if re.search(r"[(),'\"\[\]]", value) else f"str({value})"

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _end_word(self) -> None:
        if self._word is not None:
            self.found.append(self._word)
        self._word = None

    def _read(self) -> None:
        while self.at < len(self.text):
            sign = self.text[self.at]
            self.at += 1
            if sign in " \t\r\n":
                self._end_word()
            elif sign == "#":
                break
            elif sign == "\\":
                self._add(self._escaped(" \t#\"'\\$"))
            elif sign == "'":
                self._single()
            elif sign == '"':
                self._double()
            else:
                self._add(sign)
        self._end_word()

    def _escaped(self, plain: str) -> str:
        rest = self.text[self.at :]
        if found := _HEX.match(rest):
            self.at += 3
            return chr(int(found[1], 16))
        sign = rest[:1]
        self.at += 1
        if sign in _NAMED:
            return _NAMED[sign]
        return sign if sign and sign in plain else "\\" + sign

    def _single(self) -> None:
        end = self.text.find("'", self.at)
        self.open_quote |= end < 0
        end = len(self.text) if end < 0 else end
        self._add(self.text[self.at : end])
        self.at = end + 1

    def _double(self) -> None:
        self._add("")
        while self.at < len(self.text):
            sign = self.text[self.at]
            self.at += 1
            if sign == '"':
                return
            if sign == "\\":
                self._add(self._escaped("\"\\$'# "))
            elif sign == "$" and (found := _VARIABLE.match(self.text, self.at - 1)):
                self.at = found.end()
                self._add(self._value(found[1] or found[3], found[2]))
            else:
                self._add(sign)
        self.open_quote = True

    def _value(self, name: str, default: str | None) -> str:
        if name not in self.environment and default is None:
            self.unknown.append(name)
        return self.environment.get(name, default or "")


def expanded(text: str, environment: Mapping[str, str]) -> tuple[str, list[str]]:
    """The text of an address, in which variables count without quotes as well, and the variables that nobody gave."""
    unknown = [found[1] or found[3] for found in _VARIABLE.finditer(text) if found[2] is None]
    unknown = [name for name in unknown if name not in environment]
    return _VARIABLE.sub(lambda found: environment.get(found[1] or found[3], found[2] or ""), text), unknown
