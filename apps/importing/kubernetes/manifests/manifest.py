"""One object of a cluster: its values by path, and what became of each of its fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from apps.importing.kubernetes.manifests.known import is_known
from apps.importing.masking import HIDDEN
from apps.importing.values.fields import Fields, as_text, names_secret, shown_path, shown_value
from apps.importing.values.parsing import Document, Leaf, Path
from apps.importing.verdicts import Ledger, Line, Verdict

ANNOTATIONS = ("metadata", "annotations")
AGAIN = "The same key stands here once more further down; that one counts."
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Columns of values that an alias repeats: none of them is a place in a line.
_REPEATED = count(1_000_000)


@dataclass(slots=True, kw_only=True)
class Manifest(Fields):
    """One object of a cluster."""

    kind: str
    group: str
    namespace: str
    name: str

    def annotations(self) -> dict[str, str]:
        """Names and texts of annotations."""
        found = self.at(*ANNOTATIONS)
        return {name: as_text(value) for name, value in found.items()} if isinstance(found, Mapping) else {}

    def is_known(self, path: Path) -> bool:
        """Whether a field of the kind has a meaning."""
        return is_known(self.kind, path)


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
    made = Manifest(kind=kind, group=group, namespace=namespace, name=name, data=data, ledger=ledger)
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
    return str(path[2]) if path[:2] == ANNOTATIONS and len(path) == 3 else shown_path(path)


def _value(manifest: Manifest, path: Path, leaf: Leaf) -> str:
    """What the report shows: no secret, and a text of several lines by its first one."""
    name = manifest.at(*path[:-1], "name") if path and path[-1] == "value" else None
    secret = manifest.kind == "Secret" and path[:1] in (("data",), ("stringData",))
    last = str(path[-1]) if path else ""
    if secret or (isinstance(name, str) and names_secret(name)) or "snippet" in last or last == LAST_APPLIED:
        return HIDDEN
    return shown_value(leaf.value)
