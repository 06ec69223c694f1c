"""Edit conflicts: what you began with, yours and what is live, field by field, and a form that holds both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core import signing

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.audit.selectors import entry_of_version
from apps.core.errors import Invalid
from apps.definitions.previewing.merging import Who, differences, merge
from apps.definitions.reading.describing import Row, describe, settled
from apps.definitions.reading.documents import read_object

SALT = "spillway three-way"
# Fields whose name says less to people than a word of theirs.
WORDS = {"load_balancer": "Load balancer", "path_kind": "Path match", "prefix_rewrite": "Rewrite prefix to"}
# A change of a part is a new version of the whole.
PARTS = {"Pool": ("Server", "Backend")}
OUTCOMES = {
    Who.YOURS: "Only you changed it. Your value is used.",
    Who.THEIRS: "Only they changed it. Their value is used.",
    Who.BOTH: "You both changed it. Your value is used unless you enter theirs below.",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One field that somebody changed, as text for three columns, and what becomes of it."""

    field: str
    base: str
    yours: str
    live: str
    outcome: str
    conflict: bool


@dataclass(frozen=True, slots=True)
class EditConflict:
    """Two edits of one version: the differences, the document that holds both, and who saved what is live."""

    lines: tuple[Line, ...]
    merged: dict[str, Any]
    live: Any
    entry: Entry | None
    known: bool

    @property
    def conflicts(self) -> int:
        """How many fields both sides changed differently."""
        return sum(line.conflict for line in self.lines)


def remember(row: Row) -> str:
    """The document of a row as a form carries it along, so that a later conflict knows where it began."""
    return signing.dumps(describe(row), salt=SALT, compress=True)


def _remembered(text: str) -> dict[str, Any] | None:
    try:
        found = signing.loads(text, salt=SALT)
    except signing.BadSignature:
        return None
    return found if isinstance(found, dict) else None


def edit_conflict(actor: Actor, kind: str, live: Any, typed: Mapping[str, Any], began: str) -> EditConflict:
    """Compare what was typed (a spec) with what is live, from where the form began (`remember`).

    Without a beginning that can be read, nobody knows who changed what: every difference is then shown as yours.
    """
    theirs, base = describe(live), _remembered(began)
    yours = _settled(kind, live, theirs, typed)
    known = base is not None
    base = base if base is not None else theirs
    lines = tuple(
        Line(
            field=" › ".join(_word(part) for part in each.path),
            base=_text(each.base),
            yours=_text(each.yours),
            live=_text(each.theirs),
            outcome=OUTCOMES[each.who],
            conflict=each.who is Who.BOTH,
        )
        for each in differences(base, yours, theirs)
    )
    label = f"{live.account.name}/{live.name}"
    entry = entry_of_version(actor, (kind, *PARTS.get(kind, ())), label, live.version)
    return EditConflict(lines, merge(base, yours, theirs), live, entry, known)


def _settled(kind: str, live: Any, theirs: dict[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed with its defaults written out; as it is where it cannot be read yet."""
    try:
        return settled(theirs, read_object({"kind": kind, "name": live.name, "spec": dict(typed)}).spec)
    except Invalid:
        return dict(theirs) | dict(typed)


def _word(part: str) -> str:
    return WORDS.get(part, part.replace("_", " ").capitalize() if part.islower() and "-" not in part else part)


def _text(value: Any) -> str:
    if value in (None, [], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "\n".join(_text(entry) for entry in value)
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_text(value[key])}" for key in value if value[key] not in (None, "", [], {}))
    return str(value)
