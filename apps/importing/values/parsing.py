"""YAML as plain values, with the line of every value; what could grow or nest without end is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

MOST_VALUES, MOST_DEPTH = 200_000, 60
# A longer number is text: Python writes none of more than 4 300 digits.
MOST_DIGITS = 100
RENDER = "It looks like a template of a chart: render it first (helm template)."
# Written in C where libyaml is there.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Path = tuple[str | int, ...]
_SCALARS = yaml.constructor.SafeConstructor()


class Refused(Exception):
    """The text is no YAML that is read here; `line` is where that shows."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line
        self.why = why


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that holds no other one, where it stands, and its key's place in the document."""

    path: Path
    value: Any
    line: int
    column: int
    again: bool = False  # a later key of the same name counts instead


@dataclass(slots=True)
class Document:
    """One document: its values, and all leaves in the order of the text."""

    value: Any = None
    leaves: list[Leaf] = field(default_factory=list)


@dataclass(slots=True)
class Count:
    """How many values all files of an import have, those that aliases repeat included."""

    events: int = 0
    values: int = 0


def documents(text: str, count: Count) -> Iterator[Document]:
    """Every document that is not empty. Raises Refused."""
    try:
        _measure(text, count)
        nodes = list(yaml.compose_all(text, Loader=LOADER))
    except UnicodeError as error:
        raise Refused(1, "This is no text in UTF-8.") from error
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "it cannot be read"
        hint = f" {RENDER}" if "{{" in text else ""
        raise Refused(_line(getattr(error, "problem_mark", None)), f"This is no YAML: {problem}.{hint}") from error
    walk = _Walk(count)
    for node in nodes:
        if node is not None and node.value != "":  # else nothing stands between two marks
            found = Document()
            found.value = walk.value(node, (), node.start_mark, found)
            yield found


def _measure(text: str, count: Count) -> None:
    """Event by event, which needs no memory: composing goes down into each level."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        count.events += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_DEPTH:
            raise Refused(_line(event.start_mark), f"Values are nested deeper than {MOST_DEPTH} levels.")
        if count.events > 4 * MOST_VALUES:
            raise Refused(_line(event.start_mark), f"The files have more than {MOST_VALUES} values; divide them.")


def _line(mark: Any) -> int:
    """The line of a mark, the first one where there is none."""
    return mark.line + 1 if mark else 1


class _Walk:
    """Counts values as aliases are followed, so that a few lines cannot become millions."""

    def __init__(self, count: Count) -> None:
        self.count = count

    def value(self, node: yaml.Node, path: Path, mark: yaml.Mark, found: Document) -> Any:
        """The value of a node; `mark` is that of its key."""
        self.count.values += 1
        if self.count.values > MOST_VALUES or len(path) > MOST_DEPTH:
            raise Refused(mark.line + 1, f"Anchors make more than {MOST_VALUES} values, or values without an end.")
        value: Any
        if isinstance(node, yaml.MappingNode):
            value = self._mapping(node, path, found)
        elif isinstance(node, yaml.SequenceNode):
            value = [self.value(each, (*path, at), each.start_mark, found) for at, each in enumerate(node.value)]
        else:
            value = _scalar(node)
        if value in ({}, []) or not isinstance(value, dict | list):
            found.leaves.append(Leaf(path, value, mark.line + 1, mark.column))
        return value

    def _mapping(self, node: yaml.MappingNode, path: Path, found: Document) -> dict[str, Any]:
        value: dict[str, Any] = {}
        last = {key.value: at for at, (key, _) in enumerate(node.value) if isinstance(key, yaml.ScalarNode)}
        for at, (key, inner) in enumerate(node.value):
            if not isinstance(key, yaml.ScalarNode):
                raise Refused(key.start_mark.line + 1, "A key is a list or a mapping; manifests have words.")
            if key.tag == "tag:yaml.org,2002:merge":
                raise Refused(key.start_mark.line + 1, "Merge keys (<<) are not read; write the values out.")
            if last[key.value] != at:
                mark = key.start_mark
                found.leaves.append(Leaf((*path, key.value), "…", mark.line + 1, mark.column, again=True))
            else:
                value[key.value] = self.value(inner, (*path, key.value), key.start_mark, found)
        return value


def _scalar(node: Any) -> Any:
    """Text, number, truth or nothing; a date or anything else stays the text that it is."""
    kind = node.tag.rpartition(":")[2]
    try:
        if kind == "null":
            return None
        if kind == "bool":
            return _SCALARS.construct_yaml_bool(node)
        if kind == "int" and len(node.value) <= MOST_DIGITS:
            return _SCALARS.construct_yaml_int(node)
        if kind == "float":
            return _SCALARS.construct_yaml_float(node)
    except (ValueError, KeyError):
        return str(node.value)
    return str(node.value)
