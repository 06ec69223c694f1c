"""Many objects of one kind in one call: all or none, or each by itself with an answer of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.accounts.actors import Actor
from apps.compiler import grammar
from apps.core.errors import FieldError, Invalid, Managed, NotFound, SpillwayError, Stale, there
from apps.definitions.reading.documents import read_object
from apps.definitions.reading.fields import Reader, integer
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.registry import KINDS
from apps.definitions.writing.objects import delete, existing, save
from apps.definitions.writing.transactions import change_set
from apps.fleet.models import Fleet
from apps.fleet.selectors import generations

MOST_ITEMS = 1000
ACTIONS = ("create", "update", "delete")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to do: an object by its id, or by its name and account; `version` is the one that was seen."""

    action: str
    name: str | None
    account: str | None
    pk: int | None
    version: int | None
    spec: object


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What came of one item: the row as it is now (with its id gone after a delete), or why not."""

    action: str
    row: Any = None
    error: SpillwayError | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A result per item in the order of the items, and the generation of each fleet that makes them live."""

    results: tuple[ItemResult, ...]
    generations: dict[str, int]


def write_batch(*, actor: Actor, kind: str, items: object, atomic: bool, reason: str = "") -> Batch:
    """Create, update and delete up to 1000 objects of a kind.

    With `atomic` one transaction does all of it, and one item that is refused refuses all: Invalid names the errors of
    every one below `/items/3`. Else each item has its own transaction and its own result.
    """
    KINDS[kind].may_change(actor)
    wanted = _read(items)
    run = _all_or_none if atomic else _each_by_itself
    return run(wanted, kind, lambda: change_set(actor, reason=reason))


def _read(items: object) -> list[Item]:
    if not isinstance(items, list) or not 0 < len(items) <= MOST_ITEMS:
        raise Invalid(
            [FieldError("/items", "not_list", f"Send 1 to {MOST_ITEMS} items: {{action, name or id, spec}}.")]
        )
    field_errors: list[FieldError] = []
    found = [_item(Reader(entry, f"/items/{index}", field_errors)) for index, entry in enumerate(items)]
    if field_errors:
        raise Invalid(field_errors)
    return found


def _item(reader: Reader) -> Item:
    action = reader.required("action", _action)
    name = reader.optional("name", grammar.name, None)
    pk = reader.optional("id", integer(1, 2**63 - 1), None)
    account = reader.optional("account", grammar.name, None)
    version = reader.optional("version", integer(1, 2**31), None)
    if reader.has("spec") == (action == "delete"):
        reader.add_error("spec", "spec", "Send spec for create and update, and leave it out for delete.")
    if action == "create" and (pk is not None or version is not None):
        reader.add_error("", "create", "For create, send a name, and leave out id and version.")
    if (pk is None) == (name is None):
        reader.add_error("", "identity", "Name the object by either id or name.")
    reader.close()
    return Item(action, name, account, pk, version, reader.data.get("spec"))


def _action(value: object) -> str:
    if value not in ACTIONS:
        raise grammar.GrammarError("choice", "Use create, update or delete.")
    return str(value)


def _all_or_none(items: list[Item], kind: str, begin: Callable[[], Any]) -> Batch:
    field_errors: list[FieldError] = []
    results = []
    with begin() as changes:
        for index, item in enumerate(items):
            changes.field_errors.pointer = f"/items/{index}"
            try:
                results.append(ItemResult(item.action, _do(changes, kind, item)))
            except SpillwayError as error:
                field_errors += _field_errors(error, changes.field_errors.pointer)
                changes.field_errors.drain()
        changes.field_errors.pointer = ""
        if field_errors:
            raise Invalid(field_errors)
    return Batch(tuple(results), generations(changes.affected.fleets.values()))


def _each_by_itself(items: list[Item], kind: str, begin: Callable[[], Any]) -> Batch:
    results, touched = [], dict[int, Fleet]()
    for item in items:
        try:
            with begin() as changes:
                row = _do(changes, kind, item)
        except SpillwayError as error:
            results.append(ItemResult(item.action, error=error))
        else:
            results.append(ItemResult(item.action, row))
            touched |= changes.affected.fleets
    return Batch(tuple(results), generations(touched.values()))


def _do(changes: ChangeSet, kind: str, item: Item) -> Any:
    """Save or delete one object. Raises what saving and deleting by themselves raise."""
    row = _row(changes, kind, item)
    if item.action == "delete":
        delete(changes, kind, row, expected_version=item.version)
        return row
    name, account = (row.name, row.account.name) if row is not None else (item.name, item.account)
    sent = {"kind": kind, "name": name, "account": account, "spec": item.spec}
    wanted = read_object(sent, pointer=changes.field_errors.pointer)
    return save(changes, wanted, expected_version=item.version, create_only=row is None)[0]


def _row(changes: ChangeSet, kind: str, item: Item) -> Any:
    """The row of an item that changes one, None for a new one. Raises NotFound, alike for foreign and missing ones."""
    if item.action == "create":
        return None
    if item.pk is not None:
        row = KINDS[kind].rows(changes.actor).filter(pk=item.pk).first()
    elif item.account not in (None, changes.actor.account.name) and not changes.actor.is_operator:
        row = None
    else:
        row = existing(changes, kind, changes.account(item.account), item.name or "")
    return there(row)


def _field_errors(error: SpillwayError, pointer: str) -> list[FieldError]:
    if isinstance(error, Invalid):
        return list(error.field_errors)
    if isinstance(error, Managed):
        return [FieldError(pointer, field_error.code, field_error.detail) for field_error in error.field_errors]
    code = "stale" if isinstance(error, Stale) else "not_found" if isinstance(error, NotFound) else "conflict"
    return [FieldError(pointer, code, error.detail)]
