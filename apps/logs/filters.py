"""The language of filters: words such as `status>=500 route:shop -path:/healthz total>1s "free text"`; pure.

Words are joined by *and*, values of one word by *or* (`route:shop,api`). A filter becomes conditions with values; none
of it ever becomes text of a question.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from apps.compiler.address_spelling import spelled
from apps.drivers.logs.contract import (
    ADDRESS_FIELDS,
    HEADER,
    NUMBER_FIELDS,
    TEXT_FIELDS,
    Comparison,
    Condition,
)

LONGEST = 2000
MOST_WORDS = 40
MOST_VALUES = 50
# What people call fields, beside their own names.
ALIASES: Mapping[str, str] = {
    "queue": "queue_ms",
    "connect": "connect_ms",
    "response": "response_ms",
    "total": "total_ms",
    "request": "request_ms",
    "in": "bytes_in",
    "out": "bytes_out",
    "lb": "load_balancer",
    "parent": "parent_id",
    "home": "home_region",
    "by": "decided_by",
    "ip": "client",
    "trace": "trace_id",
    "span": "span_id",
}
FIELDS = frozenset(TEXT_FIELDS + NUMBER_FIELDS + ADDRESS_FIELDS)
_SIGNS = {
    ":": Comparison.IS,
    "=": Comparison.IS,
    "!=": Comparison.IS,
    ">=": Comparison.AT_LEAST,
    "<=": Comparison.AT_MOST,
    ">": Comparison.ABOVE,
    "<": Comparison.BELOW,
}
_WORD = re.compile(
    r"""\s*(?P<word>(?P<minus>-)?(?:(?P<field>[A-Za-z_]+(?:\.[A-Za-z0-9_-]+)?)(?P<sign>!=|>=|<=|[:=<>]))?"""
    r"""(?P<values>(?:"(?:[^"\\]|\\.)*"|[^\s"])*))""",
    re.DOTALL,
)
_VALUE = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^,"])+', re.DOTALL)
_PIECE = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^"]+)', re.DOTALL)
_NUMBER = re.compile(r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,6})?)(?P<unit>[a-zA-Z]*)")
_TIMES = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}
_SIZES = {"": 1, "b": 1, "kb": 1000, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


class FilterError(ValueError):
    """A word of a filter means nothing; `word` is it, `message` says so and what to write instead."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(message)
        self.word = word
        self.message = message


@dataclass(frozen=True, slots=True)
class _Value:
    """One value as it was written; in quotes, a star is a star."""

    text: str
    quoted: bool


def parse(text: str) -> tuple[Condition, ...]:
    """The conditions of a filter. Raises FilterError."""
    conditions = tuple(map(_condition, _words(text)))
    if len(conditions) > MOST_WORDS:
        raise FilterError("", f"The filter has {len(conditions)} words; {MOST_WORDS} are the most.")
    return conditions


def words_of(text: str) -> list[str]:
    """The words of a filter as they are written. Raises FilterError."""
    return [match["word"] for match in _words(text)]


def _words(text: str) -> Iterator[re.Match[str]]:
    if len(text) > LONGEST:
        raise FilterError("", f"The filter is longer than {LONGEST} characters.")
    at = 0
    while text[at:].strip():
        match = _WORD.match(text, at)
        if match is None or not match["word"] or (match.end() < len(text) and not text[match.end()].isspace()):
            rest = text[at:].split(maxsplit=1)[0]
            raise FilterError(
                rest, f"{rest}: a quote does not end; close it, or put the text in quotes and a \\ before it."
            )
        yield match
        at = match.end()


def word_of(field: str, value: str, *, negated: bool = False) -> str:
    """The word that asks for exactly this value of a field, as a click on it adds; empty values are asked by `""`."""
    shown = value if re.fullmatch(r"[A-Za-z0-9_./:@%+=~-]+", value) and not value.startswith("-") else _quoted(value)
    return f"{'-' if negated else ''}{field}:{shown}"


def _condition(match: re.Match[str]) -> Condition:
    word, sign = match["word"], match["sign"]
    negated = bool(match["minus"]) != (sign == "!=")
    if sign is None:
        return _free_text(word, match["values"], negated)
    name = _field(word, match["field"])
    values = _values(word, match["values"])
    if name in NUMBER_FIELDS:
        return _number_condition(word, name, _SIGNS[sign], values, negated)
    if sign not in (":", "=", "!="):
        field = match["field"]
        raise FilterError(word, f"{word}: {field} is text, which is not more or less: write {field}:value.")
    if name in ADDRESS_FIELDS:
        return _address_condition(word, name, values, negated)
    return _text_condition(word, name, values, negated)


def _free_text(word: str, raw: str, negated: bool) -> Condition:
    if word in {"AND", "OR", "NOT", "and", "or", "not"}:
        raise FilterError(
            word, f"{word} is no word here: all words must hold; for or write route:shop,api, for not -route:shop."
        )
    text = _plain(raw)
    if not text:
        raise FilterError(word, f"{word} looks for nothing: write a text.")
    return Condition("", Comparison.CONTAINS, (text,), negated)


def _field(word: str, written: str) -> str:
    if written.lower().startswith(HEADER):
        return written.lower()  # as nodes write names of headers
    name = ALIASES.get(written.lower(), written.lower())
    if name in FIELDS:
        return name
    if name == "time":
        raise FilterError(word, f"{word}: the time is chosen beside the filter, not in it.")
    near = difflib.get_close_matches(written.lower(), sorted(FIELDS | set(ALIASES)), n=1)
    hint = f"did you mean {near[0]}?" if near else 'put it in quotes to look for it as text ("…").'
    raise FilterError(word, f"{word}: there is no field {written}; {hint}")


def _values(word: str, raw: str) -> list[_Value]:
    found = [_Value(_plain(each), quoted='"' in each) for each in _VALUE.findall(raw)]
    if not found:
        raise FilterError(word, f'{word} has no value: write one behind it, "" for an empty one.')
    if len(found) > MOST_VALUES:
        raise FilterError(word, f"{word[:60]}… has {len(found)} values; {MOST_VALUES} are the most.")
    return found


def _plain(raw: str) -> str:
    """The text that was meant: a backslash means something in quotes only."""
    return "".join(
        re.sub(r"\\(.)", r"\1", each["quoted"], flags=re.DOTALL) if each["quoted"] is not None else each["plain"]
        for each in _PIECE.finditer(raw)
    )


def _number_condition(word: str, name: str, sign: Comparison, values: list[_Value], negated: bool) -> Condition:
    if sign != Comparison.IS and len(values) > 1:
        raise FilterError(word, f"{word} compares with several values: write one.")
    if not all(value.text for value in values):
        return _without_number(word, name, sign, values, negated)
    numbers: list[int] = []
    for value in values:
        if name == "status" and sign == Comparison.IS and re.fullmatch("[1-5]xx", value.text.lower()):
            first = int(value.text[0]) * 100
            numbers += range(first, first + 100)
        else:
            numbers.append(_number(word, name, value.text))
    return Condition(name, sign, tuple(numbers), negated)


def _without_number(word: str, name: str, sign: Comparison, values: list[_Value], negated: bool) -> Condition:
    """Lines that have no such number: what none of them has is 0 or more."""
    if sign != Comparison.IS or len(values) > 1:
        raise FilterError(word, f'{word}: write {name}:"" alone for lines without this number.')
    return Condition(name, Comparison.AT_LEAST, (0,), not negated)


def _number(word: str, name: str, text: str) -> int:
    units = {"": 1} if name == "status" else _SIZES if name.startswith("bytes") else _TIMES
    match = _NUMBER.fullmatch(text)
    factor = units.get(match["unit"].lower()) if match else None
    if match is None or factor is None:
        example = {"status": "404 or 5xx"}.get(name, "20kb" if name.startswith("bytes") else "250ms or 1.5s")
        raise FilterError(word, f"{word}: {text} is no value of {name}: write for example {example}.")
    return min(round(float(match["number"]) * factor), 2**62)


def _address_condition(word: str, name: str, values: list[_Value], negated: bool) -> Condition:
    networks = []
    for value in values:
        if not value.text:
            if len(values) > 1:
                raise FilterError(word, f'{word}: write client:"" alone for lines without an address.')
            return Condition(name, Comparison.IS, ("",), negated)
        try:
            networks.append(spelled(ipaddress.ip_network(value.text, strict=False)))
        except ValueError:
            hint = "write for example 192.0.2.7 or 192.0.2.0/24."
            raise FilterError(word, f"{word}: {value.text} is neither an address nor a network: {hint}") from None
    if all(each.endswith(("/32", "/128")) and (":" in each) == each.endswith("/128") for each in networks):
        return Condition(name, Comparison.IS, tuple(each.rpartition("/")[0] for each in networks), negated)
    return Condition(name, Comparison.WITHIN, tuple(networks), negated)


def _text_condition(word: str, name: str, values: list[_Value], negated: bool) -> Condition:
    kinds = {_star(value) for value in values}
    if len(kinds) > 1:
        raise FilterError(word, f"{word} has values with and without a star: write one word for each.")
    texts = [value.text if value.quoted else value.text.strip("*") for value in values]
    if any("*" in text and not value.quoted for text, value in zip(texts, values, strict=True)):
        raise FilterError(
            word, f"{word}: a star may stand at the end (/api/*) or around (*cart*); in quotes it is a star."
        )
    shown = {"method": str.upper, "host": str.lower}.get(name, str)
    return Condition(name, kinds.pop(), tuple(shown(text) for text in texts), negated)


def _star(value: _Value) -> Comparison:
    if value.quoted or "*" not in value.text:
        return Comparison.IS
    return Comparison.CONTAINS if value.text.startswith("*") else Comparison.STARTS


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
