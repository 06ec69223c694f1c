"""An import as a plan: the files are read apart, what they would make is kept sealed, and nothing else is stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from apps.accounts.actors import Actor
from apps.core.errors import Conflict, FieldError, Invalid, Unavailable
from apps.definitions.models import StoredPlan
from apps.definitions.services import ANYTHING, apply_document, confirming, dry_run, store_plan, summary_of
from apps.importing.apart import Busy, TooMuchWork, Unreadable, read_apart, turn
from apps.importing.contract import Import
from apps.importing.ordering import BY_COMMAND, Order
from apps.importing.telling import by_fields
from apps.importing.verdicts import LineReport

# Each object is written, compiled and taken back, 5 ms of a thread; nobody waits longer than proxies do.
MOST_OBJECTS = 2_500


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the objects cannot be stored: which of them, which field, and what to do."""

    kind: str
    name: str
    field: str
    detail: str


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """The report without secrets, what differs everywhere, and the plan.

    The plan is None while questions are open or objects are refused.
    """

    found: Import
    everywhere: tuple[str, ...]
    plan: StoredPlan | None = None
    refusals: tuple[Refusal, ...] = ()


def plan_import(*, actor: Actor, order: Order) -> PlannedImport:
    """Read the files and keep what they would change as a plan. Raises Forbidden, Invalid, Unavailable, Conflict."""
    actor.must_operate("imports")
    try:
        with turn():
            return _plan_import(actor, order)
    except Busy as error:
        raise Unavailable("Another configuration is being read; send this one again in a moment.") from error


def _plan_import(actor: Actor, order: Order) -> PlannedImport:
    read, everywhere = _read(order), order.format.everywhere
    told = replace(
        read,
        needs=tuple(map(by_fields, read.needs)),
        report=tuple(map(_shown, read.report)),
    )
    if read.needs or not read.documents:
        return PlannedImport(told, everywhere)
    objects = list(read.documents)
    try:
        return PlannedImport(told, everywhere, _planned(actor, objects))
    except Invalid as invalid:
        refusals = tuple(_refusal(objects, each) for each in invalid.field_errors)
        return PlannedImport(told, everywhere, refusals=refusals)
    except Conflict as conflict:
        return PlannedImport(told, everywhere, refusals=(Refusal("", "", "", conflict.detail),))


def _shown(line: LineReport) -> LineReport:
    """The line for people: a header belongs to no section but its own."""
    begins = line.text.split(maxsplit=1)[:1] == line.section.split(maxsplit=1)[:1]
    return replace(line, section="" if begins else line.section, reasons=tuple(map(by_fields, line.reasons)))


def _read(order: Order) -> Import:
    try:
        found = read_apart(order.format, order.text, order.files, order.options)
    except TooMuchWork as error:
        detail = f"{order.name} takes more work than a request may do. {BY_COMMAND}"
        raise Invalid([FieldError("/file", "too_large", detail)]) from error
    except Unreadable as error:
        detail = f"{order.name} cannot be read: the reader failed with {error.kind}. Please report this."
        raise Invalid([FieldError("/file", "unreadable", detail)]) from error
    if len(found.documents) > MOST_OBJECTS:
        detail = f"{order.name} makes {len(found.documents)} objects, more than {MOST_OBJECTS}. {BY_COMMAND}"
        raise Invalid([FieldError("/file", "too_large", detail)])
    return found


def _planned(actor: Actor, objects: list[dict[str, Any]]) -> StoredPlan:
    """The way of every plan: made as if it were stored, undone, and kept for a day."""
    with confirming([ANYTHING]):  # a plan says what would be lost; who applies it confirms
        found = dry_run(actor, partial(apply_document, actor=actor, objects=objects))
    summary = summary_of(found) | {"warnings": list(found.result.losses)}
    return store_plan(actor=actor, objects=objects, manager="", prune=False, base=found.result.base, summary=summary)


def _refusal(objects: list[dict[str, Any]], error: FieldError) -> Refusal:
    """`/objects/3/spec/path` as the object and the field of it."""
    parts = error.pointer.split("/")
    if len(parts) > 2 and parts[1] == "objects" and parts[2].isdecimal() and int(parts[2]) < len(objects):
        found = objects[int(parts[2])]
        return Refusal(found["kind"], found["name"], "/" + "/".join(parts[3:]), error.detail)
    return Refusal("", "", error.pointer, error.detail)
