"""Questions about a request that every format asks: equal ones are one, and some can be asked by no route."""

from __future__ import annotations

import re
from collections.abc import Iterable

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.logic.conditions import condition_of
from apps.importing.logic.formulas import Atom, Atoms, Formula, Or, any_of, negated, replaced
from apps.importing.logic.regexes import as_pattern, as_texts, unnamed

# A route compares these with one pattern, which is as long as a pattern may be.
OF_ONE_PATTERN = frozenset({"header", "query", "cookie"})
_BEFORE_DOT = re.compile(r"^\^\.\+(?=\\\.)")
TEXTS = frozenset({"str", "beg", "end", "sub"})


class Questions:
    """Makes the questions of one import."""

    def __init__(self) -> None:
        self.atoms = Atoms()

    def unknown(self, why: str) -> Atom:
        """A question that no route can ask."""
        return self.atoms.get("unknown", why=why)

    def of_texts(
        self,
        subject: str,
        match: str,
        values: tuple[str, ...],
        *,
        name: str = "",
        ignore_case: bool = False,
        why: str = "",
    ) -> Formula:
        """Whether one of the texts is there: several questions where the pattern of one would be too long."""
        atom = self.atoms.get(subject, match, values, name=name, ignore_case=ignore_case, why=why)
        if subject not in OF_ONE_PATTERN or match not in TEXTS or len(values) < 2 or condition_of(atom) is not None:
            return atom
        half = len(values) // 2
        both = (values[:half], values[half:])
        return any_of(
            [self.of_texts(subject, match, some, name=name, ignore_case=ignore_case, why=why) for some in both]
        )

    def either(self, parts: Iterable[Formula]) -> Formula:
        """One of the formulas; those that look for texts in the same place ask together, so that a route asks less."""
        texts: dict[tuple[str, str, str, bool, str], dict[str, None]] = {}
        rest: list[Formula] = []
        for each in (inside for part in parts for inside in (part.parts if isinstance(part, Or) else (part,))):
            if isinstance(each, Atom) and each.subject in OF_ONE_PATTERN and each.match in TEXTS:
                key = (each.subject, each.match, each.name, each.ignore_case, each.why)
                texts.setdefault(key, {}).update(dict.fromkeys(each.values))
            else:
                rest.append(each)
        asked = [
            self.of_texts(subject, match, tuple(values), name=name, ignore_case=ignore_case, why=why)
            for (subject, match, name, ignore_case, why), values in texts.items()
        ]
        return any_of([*asked, *rest])

    def of_told_scheme(self, values: Iterable[str]) -> Formula | None:
        """Whether a proxy in front names one of these schemes; None for values that tell nothing.

        It is a question of the scheme itself, as listeners take the word of proxies that they trust.
        """
        said = {value.lower() for value in values}
        is_https = self.atoms.get("scheme", "https")
        return is_https if said == {"https"} else negated(is_https) if said == {"http"} else None

    def of_regex(self, text: str, subject: str, name: str, *, ignore_case: bool, why: str = "") -> Formula:
        """A question of a regular expression; one that stands for few texts becomes those."""
        if subject == "path":  # it begins with a slash, so that something stands before every dot
            text = _BEFORE_DOT.sub("", text)
        text = unnamed(text)
        plain = as_texts(text)
        ignore_case |= text.startswith("(?i)")
        if plain is None:
            return self.atoms.get(subject, "reg", (text,), name=name, ignore_case=ignore_case, why=why)
        found: dict[str, list[str]] = {}
        for match, value in plain:
            found.setdefault(match, []).append(value.lower() if subject in ("host", "sni") else value)
        parts: list[Formula] = [
            self.atoms.get(subject, match, tuple(values), name=name, ignore_case=ignore_case, why=why)
            for match, values in found.items()
        ]
        return any_of(parts)


def path_asked(questions: Questions, match: str, text: str) -> Formula:
    """Whether a path is the text or begins with it; unknown where no route can have such a path."""
    try:
        grammar.path(text if match == "str" else text.rstrip("/") or "/")
    except GrammarError as error:
        return questions.unknown(f"{text} is no path of a route. {error.message}")
    return questions.atoms.get("path", match, (text,))


def sayable(questions: Questions, formula: Formula) -> Formula:
    """The formula, in which a pattern of paths or hosts that routes cannot have is an unknown question."""

    def known(atom: Atom) -> Formula:
        if atom.match == "reg" and atom.subject == "host":
            return questions.unknown(f"hosts are named, not matched by {atom.values[0]}")
        if atom.match == "reg" and as_pattern(atom.values[0], ignore_case=atom.ignore_case) is None:
            return questions.unknown(f"patterns of routes cannot be like {atom.values[0]}")
        return atom

    return replaced(formula, known)
