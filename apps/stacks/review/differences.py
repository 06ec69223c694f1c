"""What a plan would do in our words: which object, what becomes of it, which values change; pure.

Weights are named as weights, with the pool that they belong to: it is what people move most, and what may be moved
without asking anybody (`moves_weights_only`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from apps.drivers.infra.contract import PlannedChange
from apps.drivers.infra.reading import UNKNOWN
from apps.stacks.review.replacements import NOTICED

REPLACE, IMPORT = "replace", "import"
TAKEN_OVER = "is imported: an interrupted run created it"
# By these an entry of a list is known again; the first that every entry has, each another, is taken.
IDENTITIES = ("arn", "backend_service", "target_group_arn", "group", "name", "key", "id", "priority", "region", "host")
WEIGHT = "weight"
# What Terraform works out itself from something that is listed as well.
DERIVED = frozenset({"tags_all"})
LONGEST = 160
# Where Terraform says which resource it means: a type and our name of it, in a list also which one.
_ADDRESS = re.compile(r"\b(?:aws|google|terraform)_\w+\.[\w-]+(?:\[[^\]\s]*\])?")
_CONTINUED = {
    "create": frozenset({"create", "update", REPLACE}),
    "update": frozenset({"update"}),
    REPLACE: frozenset({REPLACE, "create"}),
    "delete": frozenset({"delete"}),
}
LIST = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Detail:
    """One value that changes; `path` is Terraform's, `sentence` says it to people."""

    path: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One resource that a plan touches; `action` is create, update, replace, delete or import.

    `label` is our object's name; `before` and `after` are Terraform's attributes, secrets left out.
    """

    address: str
    type: str
    action: str
    object_id: str
    label: str
    details: tuple[Detail, ...]
    weights_only: bool
    replaced_by: tuple[str, ...] = ()
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data, for the revision store."""
        return asdict(self)


def difference_from_json(row: Mapping[str, Any]) -> Difference:
    """The reverse of `as_json`."""
    details = tuple(Detail(**each) for each in row["details"])
    return Difference(**{**row, "details": details, "replaced_by": tuple(row["replaced_by"])})


@dataclass(frozen=True, slots=True)
class Words:
    """What stands behind Terraform's addresses: `owners` say which object, `labels` how people call it.

    `names` lead from what the cloud calls a thing to Terraform's address of it.
    """

    owners: Mapping[str, str]
    labels: Mapping[str, str]
    names: Mapping[str, str]

    def object_of(self, address: str) -> str:
        """Our id of the object, empty where the resource is the stack's own."""
        return self.owners.get(address, self.owners.get(address.partition("[")[0], ""))

    def label_of(self, address: str) -> str:
        """What people call it; Terraform's address where nobody does."""
        return self.labels.get(self.object_of(address), "") or self.object_of(address) or address

    def said(self, text: str) -> str:
        """Terraform's own sentence with each of its addresses as what people call it."""
        return _ADDRESS.sub(lambda found: self.label_of(found[0]), text)

    def label_behind(self, name: str) -> str:
        """The same for what the cloud calls it."""
        return self.label_of(self.names[name]) if name in self.names else name


def action_of(change: PlannedChange) -> str:
    """One word of Terraform's one or two; what is imported and else stays as it is does nothing there."""
    if change.imported and change.actions == ("no-op",):
        return IMPORT
    return REPLACE if len(change.actions) > 1 else change.actions[0]


def read(change: PlannedChange, words: Words) -> Difference:
    """A change as people read it."""
    action = action_of(change)
    stays = action in {"update", REPLACE}
    changed = list(_changed(change.before, change.after)) if stays else []
    # A weight is read as its share, which also moves where only another weight of the list does.
    shares = list(_changed(_in_shares(change.before), _in_shares(change.after))) if stays else []
    details = [Detail(path, _sentence(path, old, new, words)) for path, old, new in shares or changed]
    return Difference(
        address=change.address,
        type=change.type,
        action=action,
        object_id=words.object_of(change.address),
        label=words.label_of(change.address),
        details=(*_first(change, action), *details),
        weights_only=action == "update"
        and not change.imported
        and bool(changed)
        and all(_moves_weight(*each) for each in changed),
        replaced_by=change.replaced_by,
        before=change.before,
        after=change.after,
    )


def _first(change: PlannedChange, action: str) -> Iterator[Detail]:
    """What people must know before any value."""
    if change.imported:
        yield Detail("", TAKEN_OVER)
    if action == REPLACE and change.type in NOTICED:
        yield Detail("", NOTICED[change.type])


def moves_weights_only(differences: Iterable[Difference]) -> bool:
    """Whether a plan changes nothing but how traffic is shared out."""
    found = list(differences)
    return bool(found) and all(each.weights_only for each in found)


def continues(approved: Iterable[Difference], planned: Iterable[Difference]) -> bool:
    """Whether a plan is what is left of one that was approved: nothing new, nothing done otherwise.

    What was to be created may be half made, and then is taken over, finished or made anew.
    """
    allowed = {each.address: each.action for each in approved}
    return all(
        each.action == IMPORT or each.action in _CONTINUED.get(allowed.get(each.address, ""), ()) for each in planned
    )


def _changed(before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    old, new = dict(_leaves(before)), dict(_leaves(after))
    for path in dict.fromkeys([*old, *new]):
        first, second = old.get(path), new.get(path)
        top = path.partition(".")[0].partition("[")[0]
        if second not in (first, UNKNOWN) and top not in DERIVED and not (_empty(first) and _empty(second)):
            yield path, first, second


def _in_shares(value: Any) -> Any:
    """Weights as shares of their list: clouds are given the smallest whole numbers, which nobody wrote."""
    if isinstance(value, Mapping):
        return {key: _in_shares(each) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    entries = [_in_shares(each) for each in value]
    weights = [each.get(WEIGHT) if isinstance(each, Mapping) else None for each in entries]
    total = sum(weight for weight in weights if isinstance(weight, int))
    if not total or not all(isinstance(weight, int) for weight in weights):
        return entries
    return [{**each, WEIGHT: f"{100 * each[WEIGHT] / total:.4g} %"} for each in entries]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _leaves(entry, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
        known_by = _identity(value)
        for index, entry in enumerate(value):
            step = f"{known_by}={entry[known_by]}" if known_by else str(index)
            rest = {key: each for key, each in entry.items() if key != known_by}
            yield from _leaves(rest, f"{path}[{step}]")
    else:
        yield path, value


def _identity(entries: LIST) -> str:
    for name in IDENTITIES:
        found = [entry.get(name) for entry in entries]
        if all(isinstance(each, str | int) and each != UNKNOWN for each in found) and len(set(found)) == len(found):
            return name
    return ""


def _is_weight(path: str) -> bool:
    return path.rpartition(".")[2] == WEIGHT


def _moves_weight(path: str, before: Any, after: Any) -> bool:
    """A weight that comes or goes is a target that comes or goes: that is more than a move."""
    return _is_weight(path) and before is not None and after is not None


def _sentence(path: str, before: Any, after: Any, words: Words) -> str:
    values = f"{_value(before)} → {_value(after)}"
    if not _is_weight(path):
        return f"{path}: {values}"
    name = path.rpartition("[")[2].partition("]")[0].partition("=")[2]
    return f"weight of {words.label_behind(name)}: {values}" if name else f"weight: {values}"


def _value(value: Any) -> str:
    text = "nothing" if _empty(value) else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _empty(value: Any) -> bool:
    return value is None or value in ("", [], {})
