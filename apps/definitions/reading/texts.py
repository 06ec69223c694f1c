"""The outermost wall: JSON and YAML that could mean two things, or eat the machine, are refused as text."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NoReturn

import yaml

from apps.core.errors import Malformed

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 32
MAX_DIGITS = 19
# No object has as many, and each that is unknown costs a sentence.
MAX_FIELDS = 10_000
# What costs about a second and 50 MB at most: JSON is read by C, YAML value by value.
MAX_JSON_VALUES = 1_000_000
MAX_YAML_VALUES = 250_000

_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile("-?(?:0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,18})\.[0-9]{1,18}")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # written in C where it is compiled in


def read_json(content: bytes) -> Any:
    """The value of a JSON text. Raises Malformed: not UTF-8, too large, too deep, a field twice, NUL, surrogates."""
    text = _text(content)
    # No value without one of these before it: counted first, because the parser cannot be stopped.
    if sum(map(content.count, (b",", b":", b"[", b"{"))) > MAX_JSON_VALUES:
        raise Malformed(f"The body has more than {MAX_JSON_VALUES} values; send it in parts.")
    try:
        found = json.loads(
            text,
            object_pairs_hook=_once,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except RecursionError:
        raise Malformed(f"The body is nested more than {MAX_DEPTH} levels deep.") from None
    except ValueError as error:
        raise Malformed(f"The body is not JSON: {_short(error)}.") from None
    _check_values(found)
    return found


def read_yaml(content: bytes) -> Any:
    """The value of a YAML text: one document of plain data in the spelling of JSON's numbers, true, false and null.

    Aliases and tags are refused (a few lines of aliases are gigabytes), and `0x50`, `1_000`, `yes` are text. The value
    grows event by event, so that reading stops where too much was read. Raises Malformed.
    """
    text = _text(content)
    try:
        found = _built(yaml.parse(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise Malformed(f"The body is not YAML{line}: {error.problem}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Malformed(f"The body is not YAML: {_short(error)}.") from None
    _check_values(found)
    return found


def _text(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise Malformed(f"The body is larger than {MAX_BYTES // 1024 // 1024} MiB; send it in parts.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"The body is not UTF-8 at byte {error.start}.") from None


def _short(error: Exception) -> str:
    text = (str(error).splitlines() or [""])[0][:200]
    return "".join(character if character.isprintable() else "�" for character in text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise Malformed(f"The field {_short(Exception(twice))} occurs twice in one object; keep one of them.")
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise Malformed(f"{word} is not a JSON number.")


def _integer(digits: str) -> int:
    """Python's own words about long numbers are no advice for callers."""
    if len(digits) > MAX_DIGITS + 1:
        raise Malformed(f"A number of the body has {len(digits)} digits; no field takes more than {MAX_DIGITS}.")
    return int(digits)


def _float(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise Malformed(f"{_short(Exception(text[:40]))} is larger than any field takes.")
    return found


class _Container:
    """A collection that is being read: a list, or an object with the name of the field that is next."""

    __slots__ = ("found", "name")

    def __init__(self, found: Any) -> None:
        self.found = found
        self.name: str | None = None

    def put(self, event: yaml.Event, value: Any) -> None:
        """The next entry, or by turns the next name and its value. Raises Malformed for a name that is none."""
        if isinstance(self.found, list):
            self.found.append(value)
        elif self.name is not None:
            self.found[self.name], self.name = value, None
        elif not isinstance(event, yaml.ScalarEvent) or event.value in self.found:
            raise Malformed("Use each field of an object only once, with a plain name.")
        else:
            self.name = event.value


def _built(events: Iterable[yaml.Event]) -> Any:
    """The value of one document. Raises Malformed for what is counted or refused while reading."""
    whole = _Container([])
    around, values, documents = [whole], 0, 0
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            around.pop()
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        elif isinstance(event, yaml.NodeEvent):
            _check_plain(event)
            values += 1
            value = _value(event)
            around[-1].put(event, value)
            if isinstance(event, yaml.CollectionStartEvent):
                around.append(_Container(value))
        if values > MAX_YAML_VALUES:
            raise Malformed(f"The body has more than {MAX_YAML_VALUES} words; send JSON, or send it in parts.")
        if len(around) > MAX_DEPTH + 1 or documents > 1:
            raise Malformed(f"Send one document, nested at most {MAX_DEPTH} levels deep.")
    return whole.found[0] if whole.found else None


def _check_plain(event: yaml.NodeEvent) -> None:
    if event.anchor or isinstance(event, yaml.AliasEvent):
        raise Malformed("Write values out in full: anchors and aliases are not supported.")
    if getattr(event, "tag", None):
        raise Malformed("Leave out tags (!…): only plain values are supported.")


def _value(event: yaml.NodeEvent) -> Any:
    """An empty collection, or what a scalar says: quoted ones are text, plain ones also numbers, true, false, null."""
    if isinstance(event, yaml.MappingStartEvent):
        return {}
    if not isinstance(event, yaml.ScalarEvent):
        return []
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _check_values(root: Any) -> None:
    """Walk everything once: depth, NUL and half surrogate pairs (which no database and no file can hold)."""
    waiting: list[tuple[Any, int]] = [(root, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise Malformed(f"The body is nested more than {MAX_DEPTH} levels deep.")
        if isinstance(value, dict):
            if len(value) > MAX_FIELDS:
                raise Malformed(f"An object of the body has more than {MAX_FIELDS} fields; send it in parts.")
            waiting.extend((entry, depth + 1) for pair in value.items() for entry in pair)
        elif isinstance(value, list):
            waiting.extend((entry, depth + 1) for entry in value)
        elif isinstance(value, str) and ("\0" in value or not _encodes(value)):
            raise Malformed("The body holds a NUL or half a surrogate pair; remove it.")


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
