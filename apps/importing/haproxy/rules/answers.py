"""Rules of `http-response` and `http-after-response`, and the `rsp` words of 1.x."""

from __future__ import annotations

import re

from apps.compiler import grammar, header_text
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.importing.haproxy.rules.formats import as_header_text
from apps.importing.haproxy.rules.old_words import removed_by
from apps.importing.haproxy.rules.requests import AT_ONCE, COLON, KEPT_OPEN, NO_NAME, WHOLE, Read, is_no_name
from apps.importing.logic.certainty import asks
from apps.importing.logic.decisions import Effect, change
from apps.importing.logic.formulas import And, Atom, Formula, Not, Or, all_of

OF_BEGINNING = "different:Responses whose Content-Type begins with the type have it, and no others."
WAITING = {"allow": "", "pause": AT_ONCE, "wait-for-body": "different:Responses are passed on as they come."}
SERVERS_ID = "different:Clients are told the id that the server has here."
_PREFIX = re.compile(r"(\^?)(.*?)\(\.\*\)\$?")
_HEADER = re.compile(r"\^?([A-Za-z0-9-]+):?(?:\\?\s)*(.*)", re.DOTALL)


def by_answer(read: Read, formula: Formula) -> tuple[Read, Formula]:
    """The effects of a rule that asks what the server said, as those of what can be asked, and what else it asks."""
    effects, said = read
    parts = formula.parts if isinstance(formula, And) else (formula,)
    asked = [part for part in parts if asks(part, "answer")]
    if len(asked) != 1 or not effects or any(each.data[0] != "response_headers" for each in effects):
        return read, formula
    rest = all_of([part for part in parts if part is not asked[0]])
    pairs = [each.data[2] for each in effects]
    if all(isinstance(pair, tuple) and _is_absent(asked[0], pair[0]) for pair in pairs):
        return ([change("response_headers", "set_if_absent", pair) for pair in pairs], said), rest
    types, differs = _types(asked[0])
    if not types:
        return read, formula
    typed = [change("typed_headers", str(each.data[1]), each.data[2]) for each in effects]
    return ([*typed, change("typed_headers", "types", types)], said or differs), rest


def _is_absent(formula: Formula, name: str) -> bool:
    """Whether it asks that the server has sent no header of the name."""
    found = formula.part if isinstance(formula, Not) else None
    return isinstance(found, Atom) and (found.match, found.name) == ("found", name.lower())


def _types(formula: Formula) -> tuple[tuple[str, ...], str]:
    """The media types that it asks for, and what differs; none where it asks for anything else."""
    atoms = formula.parts if isinstance(formula, Or) else (formula,)
    types: dict[str, None] = {}
    said = ""
    for atom in atoms:
        if not isinstance(atom, Atom) or atom.name != "content-type" or atom.match not in ("beg", "str", "sub"):
            return (), ""
        said = said if atom.match == "beg" else OF_BEGINNING
        types |= dict.fromkeys(value.lower() for value in atom.values)
    try:
        return tuple(sorted(map(grammar.media_type, types))), said
    except GrammarError:
        return (), ""


def read_response(action: str, words: tuple[str, ...]) -> Read | None:
    """What an action of `http-response` does; None for one that is not read here."""
    if action in ("set-header", "add-header") and len(words) > 1:
        return response_header(words[0], " ".join(words[1:]), action.partition("-")[0])
    if action == "del-header" and words:
        return _removed(words)
    if action in WAITING:
        return [], WAITING[action]
    if action == "replace-header" and len(words) > 2 and (found := rewritten(words[0], words[1], " ".join(words[2:]))):
        return found
    if action == "replace-header" and len(words) > 2 and words[1] in WHOLE:
        return _replaced(words[0], f"{words[0]}: {' '.join(words[2:])}")
    if action in ("replace-header", "replace-value"):
        return [], "Headers are set, added or removed as a whole; no part of one is replaced."
    return None


def response_header(name: str, value: str, operation: str) -> Read:
    """A header of responses."""
    if name.endswith(":"):
        effects, said = response_header(name.rstrip(":"), value, operation)
        return effects, said or COLON
    if name.lower() in ("connection", "keep-alive"):
        return [], KEPT_OPEN
    try:
        header_text.response_header(name)
    except GrammarError as error:
        return [], error.message
    if value.strip() in ("", '""'):
        return [change("response_headers", "remove", name)], ""
    text = as_header_text(value.strip(), of_response=True)
    if text is None:
        return [], f"The value of {name} is made of what header texts have no variable for."
    said = SERVERS_ID if "{server}" in text else ""
    return [change("response_headers", operation, (name, text))], said


def rewritten(name: str, expression: str, text: str) -> Read | None:
    """A Location that begins otherwise, cookies that become Secure; None for anything else."""
    if name.lower() == "set-cookie" and expression in WHOLE and re.fullmatch(r"\\[01];\s*secure", text, re.IGNORECASE):
        return [change("response_rewrite", "secure_cookies", True)], ""
    pattern, replaced = _PREFIX.fullmatch(expression), text.removesuffix("\\1")
    if name.lower() != "location" or pattern is None or replaced == text:
        return None
    prefix = re.sub(r"\\([./?-])", r"\1", pattern[2])
    try:
        effects = [
            change("response_rewrite", "location_prefix", rewriting.location(prefix)),
            change("response_rewrite", "location_replacement", rewriting.location(replaced)),
        ]
    except GrammarError:
        return None
    return effects, "" if pattern[1] else "different:Only the beginning of a Location is replaced."


def _replaced(name: str, text: str) -> Read | None:
    """A header whose whole value is replaced by a fixed one, wherever it is."""
    new = re.fullmatch(rf"{re.escape(name)}:(?:\\?\s)*(.*)", text, re.IGNORECASE | re.DOTALL)
    if new is None or re.search(r"\\[0-9]", new[1]):
        return None
    effects, said = response_header(name, new[1], "set")
    return effects, said or "different:The header is set in every response, whether the server sent it or not."


def _removed(words: tuple[str, ...]) -> Read:
    if "-m" in words[1:] and "str" not in words[1:]:
        return [], "Headers are removed by their whole name; list them."
    if is_no_name(words[0]):
        return [], NO_NAME
    try:
        header_text.response_header(words[0])
    except GrammarError as error:
        return [], error.message
    return [change("response_headers", "remove", words[0])], ""


def read_old(keyword: str, words: tuple[str, ...]) -> Read | None:
    """`rspadd`, `rspdel` and `rspidel`."""
    if keyword in ("rspdel", "rspidel") and words:
        return _removed_by(words[0])
    found = _HEADER.fullmatch(words[0]) if words else None
    if found is None:
        return None
    if keyword == "rspadd":
        return response_header(found[1], found[2], "add")
    if keyword in ("rsprep", "rspirep") and len(words) > 1:
        text = re.sub(rf"^{re.escape(found[1])}:(?:\\?\s)*", "", words[1], flags=re.IGNORECASE)
        anchor = "^" if words[0].startswith("^") else ""
        return rewritten(found[1], f"{anchor}{found[2]}", text) or _replaced(found[1], words[1])
    return None


def _removed_by(expression: str) -> Read:
    names, said = removed_by(expression)
    effects: list[Effect] = []
    for name in names:
        each, why = _removed((name,))
        if why and not each:
            return [], why
        effects += each
    return effects, said
