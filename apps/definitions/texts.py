"""DEFINE, the outermost wall: JSON and YAML that could mean two things, or eat the machine, are refused as text."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable
from typing import Any, NoReturn

import yaml

from apps.core.errors import Malformed

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 32


def read_json(content: bytes) -> Any:
    """The value of a JSON text. Raises Malformed: not UTF-8, too large, too deep, a field twice, NUL, surrogates."""
    try:
        found = json.loads(_text(content), object_pairs_hook=_once, parse_constant=_refuse_constant)
    except RecursionError:
        raise Malformed(f"The body is nested more than {MAX_DEPTH} levels deep.") from None
    except ValueError as error:
        raise Malformed(f"The body is not JSON: {_short(error)}.") from None
    _check_values(found)
    return found


def read_yaml(content: bytes) -> Any:
    """The value of a YAML text: one document of plain data in the spelling of JSON's numbers, true, false and null.

    Aliases and tags are refused (a few lines of aliases are gigabytes), and `0x50`, `1_000`, `yes` are text.
    Raises Malformed.
    """
    text = _text(content)
    try:
        _check_events(yaml.parse(text, Loader=_Loader))
        found = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader with fewer types still
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
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Malformed(
            f"The field {_short(Exception(twice))} stands in one object twice; nobody can know which counts."
        )
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise Malformed(f"{word} is not a number of JSON.")


def _check_events(events: Iterable[yaml.Event]) -> None:
    depth = documents = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Malformed("Write values out: anchors and aliases are not read.")
        if getattr(event, "tag", None):
            raise Malformed("Leave out tags (!…): plain values are all that is read.")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH or documents > 1:
            raise Malformed(f"Send one document, nested at most {MAX_DEPTH} levels deep.")


def _check_values(root: Any) -> None:
    """Walk everything once: depth, NUL and half surrogate pairs (which no database and no file can hold)."""
    waiting: list[tuple[Any, int]] = [(root, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise Malformed(f"The body is nested more than {MAX_DEPTH} levels deep.")
        if isinstance(value, dict):
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


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc] # the C loader where it is compiled in, else Python's
    """Reads mappings with each key once."""

    yaml_implicit_resolvers: dict[str | None, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """As the base class, but a key that stands there twice is refused."""
        keys = [key.value if isinstance(key, yaml.ScalarNode) else None for key, _ in node.value]
        if None in keys or len(set(keys)) < len(keys):
            raise Malformed("Every field of an object is a plain word that stands there once.")
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), list(first))


_resolve("bool", "true|false", "tf")
_resolve("int", "-?(?:0|[1-9][0-9]{0,18})", "-0123456789")
_resolve("float", r"-?(?:0|[1-9][0-9]{0,18})\.[0-9]{1,18}", "-0123456789")
_resolve("null", "~|null|", "~n")
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])
