"""`.if`, `.elif`, `.else` and `.endif`: which lines count, by what is known of the installation."""

from __future__ import annotations

import re
from collections.abc import Mapping

from apps.importing.verdicts import Ledger, Line, Verdict

_CALL = re.compile(r"(!?)\s*([a-z_]+)\(([^)]*)\)")
OUR_VERSION = (2, 6)
MESSAGES = (".notice", ".warning", ".alert", ".diag")


class Blocks:
    """The blocks that are open; each is (whether its lines count now, whether one of its branches counted)."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._open: list[tuple[bool, bool]] = []

    def reads(self, line: Line, ledger: Ledger) -> bool:
        """Whether the line is one of a block, or of a branch that does not count."""
        word = line.keyword
        if word in (".if", ".elif", ".else", ".endif"):
            self._change(word, " ".join(line.words[1:]))
            ledger.note(line, Verdict.NODE_SETTING, "Decided once, while the file is read.")
            return True
        if not all(counts for counts, _ in self._open):
            ledger.note(line, Verdict.DEAD, "The .if above it does not hold here.")
            return True
        if word in MESSAGES:
            ledger.note(line, Verdict.NODE_SETTING, "A message of HAProxy while it starts.")
            return True
        return False

    def _change(self, word: str, condition: str) -> None:
        if word == ".if":
            holds = self.holds(condition)
            self._open.append((holds, holds))
        elif self._open:
            _, taken = self._open.pop()
            if word != ".endif":
                holds = not taken and (word == ".else" or self.holds(condition))
                self._open.append((holds, taken or holds))

    def holds(self, condition: str) -> bool:
        """Terms with `&&` and `||`; a question that is not known is answered with no."""
        return any(all(self._term(term.strip()) for term in part.split("&&")) for part in condition.split("||"))

    def _term(self, term: str) -> bool:
        found = _CALL.fullmatch(term)
        if found is None:
            return term.lstrip("!").strip() not in ("", "0") and not term.startswith("!")
        return self._answer(found[2], [part.strip().strip("\"'") for part in found[3].split(",")]) != bool(found[1])

    def _answer(self, question: str, given: list[str]) -> bool:
        if question == "defined":
            return given[0] in self._environment
        if question in ("streq", "strneq") and len(given) == 2:
            return (given[0] == given[1]) == (question == "streq")
        if question in ("version_atleast", "openssl_version_atleast"):
            return _version(given[0]) <= OUR_VERSION
        if question in ("version_before", "openssl_version_before"):
            return _version(given[0]) > OUR_VERSION
        return question == "feature" and given[0].upper() in ("OPENSSL", "PCRE2", "ZLIB", "SLZ", "THREAD", "NS")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])
