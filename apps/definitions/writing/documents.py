"""The whole set at once: many objects in one transaction, or only what that would change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from django.db import transaction

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.compiler.grammar import GrammarError, name
from apps.core.errors import MOST_ERRORS, FieldError, Invalid
from apps.definitions.reading.documents import Object, read_object
from apps.definitions.shapes.traffic.pool import PoolSpec
from apps.definitions.shapes.traffic.route import RouteSpec
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.registry import KINDS
from apps.definitions.writing.objects import Change, delete, save
from apps.definitions.writing.rules.quotas import error_at_once, error_of_hostnames, error_of_servers
from apps.definitions.writing.transactions import change_set
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

    `objects` is a list of plain dicts (documents.py) in any order. Raises Invalid with every error (pointers
    `/objects/3/spec/…`), Conflict, Forbidden.
    """
    wanted = _read(actor, objects, prune=prune, manager=manager)
    with change_set(actor, reason=reason, manager=manager) as changes:
        done = _perform(changes, wanted, prune=prune)
    return replace(_plan(changes, done), stored=True, base=_base(changes, done), losses=tuple(changes.losses))


def plan_document(*, actor: Actor, objects: object, prune: bool = False, manager: str = "") -> Plan:
    """What `apply_document` would do in this moment: done in a transaction that is then rolled back."""
    wanted = _read(actor, objects, prune=prune, manager=manager)
    with transaction.atomic():
        with change_set(actor, manager=manager) as changes:
            done = _perform(changes, wanted, prune=prune)
        found = _plan(changes, done)
        transaction.set_rollback(True)
    return found


def _plan(changes: ChangeSet, done: list[Change]) -> Plan:
    numbers = generations(changes.affected.fleets.values())
    return Plan(tuple(done), numbers, stored=False, kept=tuple(changes.kept.values()))


def _base(changes: ChangeSet, done: Iterable[Change]) -> str:
    """Rows that come and go count by their names: numbers are given anew each time."""
    fleets = sorted((fleet.name, fleet.version) for fleet in changes.affected.fleets.values())
    read = [[*key, version] for key, version in sorted(changes.lookups.versions.items())]
    text = json.dumps([read, fleets, [asdict(change) for change in done]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _read(actor: Actor, objects: object, *, prune: bool, manager: str) -> list[Object]:
    """Every object, in the order in which they name each other. Raises Invalid with the errors of all of them."""
    field_errors: list[FieldError] = []
    if manager:
        try:
            name(manager)
        except GrammarError as error:
            field_errors.append(FieldError("/manager", error.code, error.message))
    elif prune:
        field_errors.append(
            FieldError("/manager", "missing", "Say which manager's objects prune may delete: manager=<name>.")
        )
    found = _objects(objects, field_errors)
    seen: set[tuple[str, str, str]] = set()
    for entry in found:
        identity = (entry.kind, _owner_name(actor, entry), entry.name)
        if identity in seen:
            field_errors.append(
                FieldError(f"{entry.pointer}/name", "twice", f"{entry.kind} {entry.name} is in the document twice.")
            )
        seen.add(identity)
    if field_errors:
        raise Invalid(field_errors)
    return sorted(found, key=lambda entry: ORDER.index(entry.kind))


def _objects(objects: object, field_errors: list[FieldError]) -> list[Object]:
    if not isinstance(objects, list):
        field_errors.append(FieldError("/objects", "not_list", "Write objects as a list of {kind, name, spec}."))
        return []
    if len(objects) > MAX_OBJECTS:
        field_errors.append(FieldError("/objects", "too_many", f"Use at most {MAX_OBJECTS} objects in one document."))
        return []
    found = []
    for index, entry in enumerate(objects):
        try:
            found.append(read_object(entry, pointer=f"/objects/{index}"))
        except Invalid as invalid:
            field_errors.extend(invalid.field_errors)
            if len(field_errors) > MOST_ERRORS:
                break
    return found


def _perform(changes: ChangeSet, wanted: list[Object], *, prune: bool) -> list[Change]:
    """1. Pruned routes go first: they free their match for others. 2. Save in order. 3. Prune backwards."""
    changes.of_document = True
    keep = {(entry.kind, _owner_name(changes.actor, entry), entry.name) for entry in wanted}
    _look_up(changes, wanted, prune=prune)
    changes.deferred.expected = {(entry.kind, entry.name) for entry in wanted}
    done = _prune(changes, ["Route"], keep) if prune else []
    field_errors: list[FieldError] = []
    for entry in wanted:
        changes.field_errors.pointer = entry.pointer
        try:
            done.append(save(changes, entry)[1])
        except Invalid as invalid:
            field_errors.extend(invalid.field_errors)
            changes.field_errors.drain()
            _mark_rejected(changes, entry)
            if len(field_errors) > MOST_ERRORS:
                break
    changes.field_errors.pointer = ""
    if field_errors:
        raise Invalid(field_errors)
    if prune:
        done += _prune(changes, [kind for kind in reversed(ORDER) if kind not in ("Route", "Account")], keep)
    return done


def _owner_name(actor: Actor, entry: Object) -> str:
    return "" if KINDS[entry.kind].platform else entry.account or actor.account.name


def _mark_rejected(changes: ChangeSet, entry: Object) -> None:
    changes.field_errors.rejected.add((entry.kind, entry.name))
    changes.field_errors.rejected.add((entry.kind, f"{_owner_name(changes.actor, entry)}/{entry.name}"))


def _look_up(changes: ChangeSet, wanted: Iterable[Object], *, prune: bool) -> None:
    """Fetch what exists already with a few queries instead of one per object. Raises Invalid where there is no room."""
    field_errors: list[FieldError] = []
    accounts = {account.name: account for account in Account.objects.all()} if changes.actor.is_operator else {}
    accounts[changes.actor.account.name] = changes.actor.account

    def identity(entry: Object) -> tuple[str, str]:
        return entry.kind, _owner_name(changes.actor, entry)

    for (kind, owner), entries in groupby(sorted(wanted, key=identity), key=identity):
        account = accounts.get(owner)
        if not KINDS[kind].platform and account is None:
            continue
        listed = list(entries)
        found = _rows_by_name(changes, kind, account, [entry.name for entry in listed])
        for entry in listed:
            changes.lookups.track_version(found.get(entry.name))
            changes.lookups.remember(found.get(entry.name), *KINDS[kind].key(account, entry.name))
        new = [entry for entry in listed if entry.name not in found]
        routes = {entry.pointer: entry.spec for entry in new if isinstance(entry.spec, RouteSpec)}
        changes.lookups.new_hostnames += [spec.hostname for spec in routes.values()]
        if account:
            pools = {entry.pointer: entry.spec for entry in listed if isinstance(entry.spec, PoolSpec)}
            errors = (
                error_at_once(kind, account, [entry.pointer for entry in new], len(found), prune=prune),
                error_of_hostnames(account, routes, prune=prune),
                error_of_servers(account, pools, [row.pk for row in found.values()], prune=prune),
            )
            field_errors += [error for error in errors if error]
    if field_errors:
        raise Invalid(field_errors)


def _rows_by_name(changes: ChangeSet, kind: str, account: Account | None, names: list[str]) -> dict[str, Any]:
    rows = KINDS[kind].rows(changes.actor)
    if not KINDS[kind].platform:
        rows = rows.filter(account=account)
    found: dict[str, Any] = {}
    for start in range(0, len(names), 500):
        found.update((row.name, row) for row in rows.filter(name__in=names[start : start + 500]))
    return found


def _prune(changes: ChangeSet, kinds: list[str], keep: set[tuple[str, str, str]]) -> list[Change]:
    done = []
    for kind in kinds:
        entry = KINDS[kind]
        if (entry.platform or entry.for_operators) and not changes.actor.is_operator:
            continue
        for row in entry.rows(changes.actor).filter(manager=changes.manager).order_by("pk"):  # as they are kept
            owner = "" if entry.platform else row.account.name
            if (kind, owner, row.name) not in keep:
                done.append(delete(changes, kind, row))
                if kind == "Route":
                    changes.deferred.pruned_routes[row.load_balancer_id].append(f"route {owner}/{row.name}")
    return done
