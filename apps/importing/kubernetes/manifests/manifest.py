"""One object of a cluster: its values by path, and what became of each of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from apps.importing.kubernetes.manifests.known import is_known
from apps.importing.kubernetes.manifests.parsing import Document, Leaf, Path
from apps.importing.masking import HIDDEN
from apps.importing.verdicts import Ledger, Line, Verdict

LONGEST_SHOWN = 200
ANNOTATIONS = ("metadata", "annotations")
AGAIN = "The same key stands here once more further down; that one counts."
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Columns of values that an alias repeats: none of them is a place in a line.
_REPEATED = count(1_000_000)
_SECRET_NAME = re.compile(r"authorization|cookie|token|secret|passw|api-?_?key|credential|session", re.IGNORECASE)


@dataclass(slots=True)
class Manifest:
    """`data` is the whole object; `lines` are its leaves by path."""

    kind: str
    group: str
    namespace: str
    name: str
    data: Mapping[str, Any]
    ledger: Ledger
    lines: dict[Path, Line] = field(default_factory=dict)
    _inside: dict[Path, list[Path]] = field(default_factory=dict, repr=False)

    def at(self, *path: str | int) -> Any:
        """The value at a path, None where there is none."""
        found: Any = self.data
        for part in path:
            if isinstance(part, int):
                found = found[part] if isinstance(found, list) and part < len(found) else None
            else:
                found = found.get(part) if isinstance(found, Mapping) else None
        return found

    def each(self, *path: str | int) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """The mappings of a list, each with its path."""
        found = self.at(*path)
        for at, value in enumerate(found if isinstance(found, list) else ()):
            if isinstance(value, Mapping):
                yield (*path, at), value

    def texts(self, *path: str | int) -> list[tuple[Path, str]]:
        """The texts of a list, each with its path."""
        found = self.at(*path)
        return [((*path, at), str(value)) for at, value in enumerate(found if isinstance(found, list) else ())]

    def annotations(self) -> dict[str, str]:
        """Names and texts of annotations."""
        found = self.at(*ANNOTATIONS)
        return {name: _text(value) for name, value in found.items()} if isinstance(found, Mapping) else {}

    def below(self, path: Path) -> Iterator[Line]:
        """The lines of a field and of all that it holds."""
        yield from (self.lines[key] for key in self._leaves(path))

    def known(self, path: Path) -> Iterator[Line]:
        """The same without fields that have no meaning here."""
        yield from (self.lines[key] for key in self._leaves(path) if is_known(self.kind, key))

    def _leaves(self, path: Path) -> list[Path]:
        """The paths of the leaves at and below a path; found once, as large objects are asked for each of theirs."""
        if not self._inside:
            for key in self.lines:
                for length in range(len(key) + 1):
                    self._inside.setdefault(key[:length], []).append(key)
        return self._inside.get(path, [])

    def mapped(self, path: Path, *objects: str) -> None:
        """It works as it did."""
        for line in self.known(path):
            self.ledger.mapped(line, *objects)

    def differs(self, path: Path, reason: str) -> None:
        """It works, and differs."""
        for line in self.known(path):
            self.ledger.differs(line, reason)

    def impossible(self, path: Path, reason: str) -> None:
        """It has no place here."""
        for line in self.below(path):
            self.ledger.impossible(line, reason)

    def node_setting(self, path: Path, reason: str) -> None:
        """It is the cluster's own, or done by itself."""
        for line in self.below(path):
            self.ledger.note(line, Verdict.NODE_SETTING, reason)

    def dead(self, path: Path, reason: str) -> None:
        """Nothing uses it."""
        for line in self.below(path):
            self.ledger.note(line, Verdict.DEAD, reason)
            self.ledger.outdone(line, reason)

    def open_lines(self) -> list[tuple[Path, Line]]:
        """Fields of which nobody said anything."""
        return [(path, line) for path, line in self.lines.items() if self.ledger.verdict_of(line) is None]


def manifests(documents: Iterable[Document], ledger: Ledger, file: str = "") -> list[Manifest]:
    """The objects of all documents of a file, those of lists as well."""
    found = []
    for document in documents:
        items = document.value.get("items") if isinstance(document.value, Mapping) else None
        if not isinstance(items, list) or not str(document.value.get("kind", "")).endswith("List"):
            found.append(_manifest(document.value, document.leaves, ledger, file))
            continue
        inside: dict[int, list[Leaf]] = {at: [] for at in range(len(items))}
        own = []
        for leaf in document.leaves:
            if len(leaf.path) > 2 and leaf.path[0] == "items" and isinstance(leaf.path[1], int):
                inside[leaf.path[1]].append(leaf)
            else:
                own.append(leaf)
        found.append(_manifest({**document.value, "items": None}, own, ledger, file))
        found += [_manifest(value, inside[at], ledger, file, skip=2) for at, value in enumerate(items) if inside[at]]
    return found


def only_last(found: list[Manifest]) -> list[Manifest]:
    """Of objects that stand in several places the last one, as `kubectl apply` has it; the others are dead."""
    last = {(each.kind, each.group, each.namespace, each.name): each for each in found if each.name}
    kept = []
    for each in found:
        counts = last.get((each.kind, each.group, each.namespace, each.name), each)
        if counts is each:
            kept.append(each)
            continue
        line = next(iter(counts.lines.values()))
        where = f"{line.file}, line {line.number}" if line.file else f"line {line.number}"
        each.dead((), f"The object stands once more at {where}; that one counts.")
    return kept


def _manifest(value: Any, leaves: list[Leaf], ledger: Ledger, file: str, skip: int = 0) -> Manifest:
    data: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    metadata = data.get("metadata")
    named: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    group = str(data.get("apiVersion", "")).rpartition("/")[0]
    kind, name = str(data.get("kind") or "no kind"), str(named.get("name") or "")
    namespace = str(named.get("namespace") or "default")
    made = Manifest(kind, group, namespace, name, data, ledger)
    for leaf in leaves:
        path = leaf.path[skip:]
        section = f"{kind} {namespace}/{name}" if name else kind
        line = Line(leaf.line, (), f"{_shown(path)}: {_value(made, path, leaf)}", section, file, at=leaf.column)
        if ledger.has(line):  # an alias repeats what stands elsewhere
            line = replace(line, at=next(_REPEATED))
        ledger.add(line)
        if leaf.again:
            ledger.note(line, Verdict.DEAD, AGAIN)
        else:
            made.lines[path] = line
    return made


def _shown(path: Path) -> str:
    if path[:2] == ANNOTATIONS and len(path) == 3:
        return str(path[2])
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "document"


def _value(manifest: Manifest, path: Path, leaf: Leaf) -> str:
    """What the report shows: no secret, and a text of several lines by its first one."""
    name = manifest.at(*path[:-1], "name") if path and path[-1] == "value" else None
    secret = manifest.kind == "Secret" and path[:1] in (("data",), ("stringData",))
    named = isinstance(name, str) and _SECRET_NAME.search(name)
    text, last = _text(leaf.value), str(path[-1]) if path else ""
    if secret or named or "snippet" in last or last == LAST_APPLIED or " KEY-----" in text:
        return HIDDEN
    first = text.strip().partition("\n")[0]
    return first if first == text.strip() and len(first) <= LONGEST_SHOWN else f"{first[:LONGEST_SHOWN]} {HIDDEN}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def mapping(value: Any) -> Mapping[str, Any]:
    """The value, if it is a mapping; else an empty one."""
    return value if isinstance(value, Mapping) else {}
