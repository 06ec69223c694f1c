"""DEFINE, the whole set at once: many objects in one transaction, or only what that would change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from django.db import transaction

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.compiler.grammar import GrammarError, name
from apps.core.errors import Fault, Invalid
from apps.definitions.reading.documents import Object, read_object
from apps.definitions.writing.change_set import Work, working
from apps.definitions.writing.objects import KINDS, Change, delete, finish, save
from apps.fleet.selectors import generations

MAX_OBJECTS = 20_000
ORDER = tuple(KINDS)


@dataclass(frozen=True, slots=True)
class Plan:
    """What an apply did, or would do: one change per object of the document and per pruned object.

    `generations` maps the name of each fleet that must be pushed to to the generation that makes it live; in a plan
    nothing is stored and the numbers are those that an apply in this moment would get. `base` is a digest of all that
    the changes were derived from: the version of every object that was read, and the changes themselves. `losses` says
    what carries traffic and is emptied (writing/rules/emptying.py), `kept` which fields stay as their owner set them.
    """

    changes: tuple[Change, ...]
    generations: dict[str, int]
    stored: bool
    base: str = ""
    losses: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many objects per action."""
        found = dict.fromkeys(("create", "update", "delete", "unchanged"), 0)
        for change in self.changes:
            found[change.action] += 1
        return found


def apply_document(*, actor: Actor, objects: object, prune: bool = False, manager: str = "", reason: str = "") -> Plan:
    """Make the objects so, all or nothing; `prune` deletes what the same manager made and no longer names.

    `objects` is a list of plain dicts (documents.py) in any order. Raises Invalid with every fault (pointers
    `/objects/3/spec/…`), Conflict, Forbidden.
    """
    wanted = _read(objects, prune=prune, manager=manager)
    with working(actor, reason=reason, manager=manager) as work:
        changes = _perform(work, wanted, prune=prune)
        base = _base(work, changes)
    numbers, losses = generations(work.touched.values()), tuple(work.losses)
    return Plan(tuple(changes), numbers, stored=True, base=base, losses=losses, kept=tuple(work.kept))


def plan_document(*, actor: Actor, objects: object, prune: bool = False, manager: str = "") -> Plan:
    """What `apply_document` would do in this moment: done in a transaction that is then rolled back."""
    wanted = _read(objects, prune=prune, manager=manager)
    with transaction.atomic():
        with working(actor, manager=manager) as work:
            changes = _perform(work, wanted, prune=prune)
        numbers = generations(work.touched.values())
        transaction.set_rollback(True)
    return Plan(tuple(changes), numbers, stored=False, kept=tuple(work.kept))


def _base(work: Work, changes: Iterable[Change]) -> str:
    """Rows that come and go count by their names: numbers are given anew each time."""
    fleets = sorted((fleet.name, fleet.version) for fleet in work.touched.values())
    read = [[*key, version] for key, version in sorted(work.seen.items())]
    text = json.dumps([read, fleets, [asdict(change) for change in changes]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _read(objects: object, *, prune: bool, manager: str) -> list[Object]:
    """Every object, in the order in which they name each other. Raises Invalid with the faults of all of them."""
    faults: list[Fault] = []
    if manager:
        try:
            name(manager)
        except GrammarError as error:
            faults.append(Fault("/manager", error.code, error.message))
    elif prune:
        faults.append(Fault("/manager", "missing", "Say which manager's objects prune may delete: manager=<name>."))
    found = _objects(objects, faults)
    seen: set[tuple[str, str | None, str]] = set()
    for entry in found:
        identity = (entry.kind, entry.account, entry.name)
        if identity in seen:
            faults.append(
                Fault(f"{entry.pointer}/name", "twice", f"{entry.kind} {entry.name} is in the document twice.")
            )
        seen.add(identity)
    if faults:
        raise Invalid(faults)
    return sorted(found, key=lambda entry: ORDER.index(entry.kind))


def _objects(objects: object, faults: list[Fault]) -> list[Object]:
    if not isinstance(objects, list):
        faults.append(Fault("/objects", "not_list", "Write objects as a list of {kind, name, spec}."))
        return []
    if len(objects) > MAX_OBJECTS:
        faults.append(Fault("/objects", "too_many", f"Use at most {MAX_OBJECTS} objects in one document."))
        return []
    found = []
    for index, entry in enumerate(objects):
        try:
            found.append(read_object(entry, pointer=f"/objects/{index}"))
        except Invalid as invalid:
            faults.extend(invalid.faults)
    return found


def _perform(work: Work, wanted: list[Object], *, prune: bool) -> list[Change]:
    """1. Pruned routes go first: they free their match for others. 2. Save in order. 3. Prune backwards."""
    work.of_document = True
    keep = {(entry.kind, _owner_name(work, entry), entry.name) for entry in wanted}
    _look_up(work, wanted)
    work.coming = {(entry.kind, entry.name) for entry in wanted}
    changes = _prune(work, ["Route"], keep) if prune else []
    faults: list[Fault] = []
    for entry in wanted:
        work.pointer = entry.pointer
        try:
            changes.append(save(work, entry)[1])
        except Invalid as invalid:
            faults.extend(invalid.faults)
            work.faults.clear()
            _mark_broken(work, entry)
    work.pointer = ""
    if faults:
        raise Invalid(faults)
    if prune:
        changes += _prune(work, [kind for kind in reversed(ORDER) if kind not in ("Route", "Account")], keep)
    finish(work)
    return changes


def _owner_name(work: Work, entry: Object) -> str:
    return "" if KINDS[entry.kind].platform else entry.account or work.actor.account.name


def _mark_broken(work: Work, entry: Object) -> None:
    work.broken.add((entry.kind, entry.name))
    work.broken.add((entry.kind, f"{_owner_name(work, entry)}/{entry.name}"))


def _look_up(work: Work, wanted: Iterable[Object]) -> None:
    """Fetch what exists already with a few queries instead of one per object."""
    accounts = {account.name: account for account in Account.objects.all()} if work.actor.is_operator else {}
    accounts[work.actor.account.name] = work.actor.account

    def identity(entry: Object) -> tuple[str, str]:
        return entry.kind, _owner_name(work, entry)

    for (kind, owner), entries in groupby(sorted(wanted, key=identity), key=identity):
        account = accounts.get(owner)
        if not KINDS[kind].platform and account is None:
            continue
        names = [entry.name for entry in entries]
        found = _rows_by_name(work, kind, account, names)
        key = None if KINDS[kind].platform or account is None else account.pk
        for one in names:
            work.saw(found.get(one))
            work.remember(found.get(one), "row", kind, key, one)


def _rows_by_name(work: Work, kind: str, account: Account | None, names: list[str]) -> dict[str, Any]:
    rows = KINDS[kind].rows(work.actor)
    if not KINDS[kind].platform:
        rows = rows.filter(account=account)
    found: dict[str, Any] = {}
    for start in range(0, len(names), 500):
        found.update((row.name, row) for row in rows.filter(name__in=names[start : start + 500]))
    return found


def _prune(work: Work, kinds: list[str], keep: set[tuple[str, str, str]]) -> list[Change]:
    changes = []
    for kind in kinds:
        entry = KINDS[kind]
        if (entry.platform or entry.for_operators) and not work.actor.is_operator:
            continue
        for row in entry.rows(work.actor).filter(manager=work.manager):
            owner = "" if entry.platform else row.account.name
            if (kind, owner, row.name) not in keep:
                changes.append(delete(work, kind, row))
                if kind == "Route":
                    work.pruned_routes.setdefault(row.load_balancer_id, []).append(f"route {owner}/{row.name}")
    return changes
