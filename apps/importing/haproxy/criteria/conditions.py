"""Conditions behind `if` and `unless`: names of ACLs, anonymous ones, negation and alternatives, as one formula."""

from __future__ import annotations

from apps.importing.haproxy.criteria.criteria import Criteria
from apps.importing.haproxy.text.sections import Section
from apps.importing.logic.formulas import Atom, Formula, all_of, negated
from apps.importing.verdicts import Ledger, Line, Verdict

PREDEFINED = {
    "TRUE": "always_true",
    "FALSE": "always_false",
    "HTTP": "req.proto_http",
    "WAIT_END": "always_true",
    "REQ_CONTENT": "req.len gt 0",
    "HTTP_URL_SLASH": "path_beg /",
    **{f"HTTP_{version}": f"req.ver {version}" for version in ("1.0", "1.1", "2.0", "3.0")},
    "HTTP_CONTENT": "hdr_val(content-length) gt 0",
    "RDP_COOKIE": "req.rdp_cookie_cnt gt 0",
    "HTTP_URL_STAR": "always_false",
    "HTTP_URL_ABS": "always_false",
    "LOCALHOST": "src 127.0.0.1/8",
    **{f"METH_{name}": f"method {name}" for name in ("DELETE", "OPTIONS", "PATCH", "POST", "PUT", "TRACE", "CONNECT")},
    "METH_GET": "method GET HEAD",
    "METH_HEAD": "method HEAD",
}


class Conditions:
    """The ACLs of one proxy; which of them are used is kept, so that the others can be called dead."""

    def __init__(self, section: Section, questions: Criteria, ledger: Ledger, *, of_responses: bool = False) -> None:
        self.questions = questions
        self.of_responses = of_responses
        self.ledger = ledger
        self._lines: dict[str, list[Line]] = {}
        for line in section.each("acl"):
            if len(line.words) > 2:
                self._lines.setdefault(line.words[1], []).append(line)
        self._formulas: dict[str, Formula] = {}
        self.used: dict[str, None] = {}
        self._labels: dict[Atom, str] = {}

    def label_of(self, atom: Atom) -> str:
        """The name of the acl that asks this question alone; empty for an anonymous one."""
        return self._labels.get(atom, "")

    def of(self, words: tuple[str, ...]) -> tuple[tuple[str, ...], Formula]:
        """The words before `if` or `unless`, and the formula behind it."""
        self.questions.of_responses = self.of_responses
        for at, word in enumerate(words):
            if word in ("if", "unless"):
                formula = self._read(list(words[at + 1 :]))
                return words[:at], negated(formula) if word == "unless" else formula
        return words, True

    def _read(self, words: list[str]) -> Formula:
        alternatives: list[Formula] = []
        terms: list[Formula] = []
        minus = False
        while words:
            word = words.pop(0)
            if word.lower() in ("or", "||"):
                alternatives.append(all_of(terms))
                terms = []
                continue
            while word.startswith("!"):
                minus, word = not minus, word[1:]
            if not word:
                continue
            formula = self._anonymous(words) if word == "{" else self.named(word)
            terms.append(negated(formula) if minus else formula)
            minus = False
        return self.questions.either([*alternatives, all_of(terms)])

    def _anonymous(self, words: list[str]) -> Formula:
        end = words.index("}") if "}" in words else len(words)
        inside = tuple(words[:end])
        del words[: end + 1]
        return self.questions.read(inside) if inside else self.questions.unknown("an empty condition")

    def named(self, name: str) -> Formula:
        """All lines of this name: one of them is enough."""
        self.used[name] = None
        if name not in self._formulas:
            self._formulas[name] = formula = self._of_lines(name)
            if isinstance(formula, Atom):
                self._labels.setdefault(formula, name)
        return self._formulas[name]

    def _of_lines(self, name: str) -> Formula:
        lines = self._lines.get(name)
        if lines is None:
            predefined = PREDEFINED.get(name)
            unknown = self.questions.unknown(f"there is no acl {name}, so HAProxy does not start")
            return self.questions.read(tuple(predefined.split())) if predefined else unknown
        return self.questions.either([self.questions.read(line.words[2:]) for line in lines])

    def lines_of(self, words: tuple[str, ...]) -> list[Line]:
        """The lines of the ACLs that are named in a condition."""
        names = [word.lstrip("!") for word in words]
        return [line for name in names for line in self._lines.get(name, ())]

    def close(self, owner: str) -> None:
        """ACLs that nothing names are dead; others are part of what was made."""
        for name, lines in self._lines.items():
            for line in lines:
                if name not in self.used:
                    self.ledger.note(line, Verdict.DEAD, "No rule names this acl.")
                elif self.ledger.verdict_of(line) is None:
                    self.ledger.mapped(line, owner)
