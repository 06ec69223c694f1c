"""The memory: Terraform's state of each stack, locked by one, sealed, never older than it was.

Terraform asks by HTTP (terraform_backend.py) with the password of a run; people read and unlock through
`services.py`. What is refused leaves everything as it was:

* a write needs the lock, by its id, and comes from the run that holds it;
* a state has a lineage (one life of the stack) and a serial that rises: another lineage or a lower serial is an old
  worker's, the same serial with other content a fork of the truth;
* the content must be what its MD5 says it is.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.core.clock import database_now, now
from apps.core.events import publish_after_commit
from apps.core.secrets.sealing import seal, unseal
from apps.stacks.models import StackRun, StackSync, StateLock, StateVersion

MOST_BYTES = 64 * 1024 * 1024
KEPT = 50
KEPT_DAILY = timedelta(days=90)
FORMAT = 4
LONGEST_ID = 64
LONGEST_WORD = 400
INFO = ("ID", "Operation", "Info", "Who", "Version", "Created", "Path")


class Unreadable(Exception):
    """What was sent is no state, no lock, or not what its MD5 says."""


class Held(Exception):
    """Somebody else holds the lock; `info` is what they said of themselves."""

    def __init__(self, info: Mapping[str, Any]) -> None:
        super().__init__(str(info.get("ID", "")))
        self.info = info


class Refused(Exception):
    """The state would go back, or become another stack's; nothing was written."""


@dataclass(frozen=True, slots=True)
class State:
    """What Terraform wrote last."""

    content: bytes
    serial: int
    lineage: str


def read(stack_id: int) -> State | None:
    """The newest state of the stack, None before the first. Raises Unsealable."""
    row = StateVersion.objects.filter(stack_id=stack_id).order_by("-number").first()
    return State(content_of(row), row.serial, row.lineage) if row else None


def content_of(row: StateVersion) -> bytes:
    """The plain text of one version. Raises Unsealable."""
    return zlib.decompress(unseal(row.content))


def write(run: StackRun, content: bytes, *, lock_id: str, md5: str) -> None:
    """Keep the next state of the run's stack; the same one again is welcome. Raises Unreadable, Held, Refused.

    `md5` is the hexadecimal digest that came with it, empty where none came.
    """
    serial, lineage, resources = _examine(content, md5)
    with transaction.atomic():
        _serialize(run)
        _must_hold(run, lock_id)
        newest = StateVersion.objects.filter(stack_id=run.stack_id).order_by("-number").defer("content").first()
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if newest is not None and (newest.serial, newest.lineage, newest.md5) == (serial, lineage, digest):
            return
        _must_follow(newest, serial, lineage)
        StateVersion.objects.create(
            stack_id=run.stack_id,
            number=newest.number + 1 if newest else 1,
            serial=serial,
            lineage=lineage,
            md5=digest,
            resources=resources,
            content=seal(zlib.compress(content, level=3)),
            run=run,
            written_by=run.actor,
        )
        forget_old(run.stack_id, now())
        publish_after_commit("stacks", id=run.stack_id)


def lock(run: StackRun, body: bytes) -> None:
    """Take the lock for the run; the same lock again (an answer that was lost) is welcome. Raises Unreadable, Held."""
    info = _lock_info(body)
    with transaction.atomic():
        _serialize(run)
        held = StateLock.objects.filter(stack_id=run.stack_id).first()
        if held is not None:
            if (held.lock_id, held.run_id) != (info["ID"], run.pk):
                raise Held(held.info)
            return
        StateLock.objects.create(
            stack_id=run.stack_id, lock_id=info["ID"], info=info, run=run, held_by=run.actor, seen_at=database_now()
        )
        publish_after_commit("stacks", id=run.stack_id)


def unlock(run: StackRun, body: bytes) -> None:
    """Give the lock back; one that is gone is given back already. Raises Unreadable, Held."""
    info = _lock_info(body)
    with transaction.atomic():
        _serialize(run)
        held = StateLock.objects.filter(stack_id=run.stack_id).first()
        if held is None:
            return
        if (held.lock_id, held.run_id) != (info["ID"], run.pk):
            raise Held(held.info)
        held.delete()
        publish_after_commit("stacks", id=run.stack_id)


def note_life(run: StackRun) -> None:
    """The run's Terraform lives: its lock is left alone."""
    StateLock.objects.filter(stack_id=run.stack_id, run=run).update(seen_at=database_now())


def delete(run: StackRun, *, lock_id: str) -> None:
    """Forget the state, which Terraform asks for when nothing is left of the stack. Raises Held, Refused.

    A state that still knows resources is kept: to forget it would be to lose them.
    """
    with transaction.atomic():
        _serialize(run)
        if lock_id or StateLock.objects.filter(stack_id=run.stack_id).exists():
            _must_hold(run, lock_id)
        newest = StateVersion.objects.filter(stack_id=run.stack_id).order_by("-number").first()
        if newest is not None and newest.resources:
            raise Refused(f"The state still has {newest.resources} resources.")
        StateVersion.objects.filter(stack_id=run.stack_id).delete()


def forget_old(stack_id: int, moment: datetime) -> None:
    """Keep the last versions, and of those before them the last one of each day for some months."""
    rows = StateVersion.objects.filter(stack_id=stack_id).order_by("-number").values_list("pk", "created_at")
    days: set[object] = set()
    old = []
    for index, (pk, at) in enumerate(rows):
        if index >= KEPT and (at.date() in days or moment - at > KEPT_DAILY):
            old.append(pk)
        days.add(at.date())
    StateVersion.objects.filter(pk__in=old).delete()


def _serialize(run: StackRun) -> None:
    """Let one transaction at a time touch the state, and only of the run's present attempt. Raises Refused.

    The password was good when the request came in; an attempt that begins meanwhile must find a state that nobody else
    may write.
    """
    StackSync.objects.get_or_create(stack_id=run.stack_id)
    StackSync.objects.select_for_update().get(stack_id=run.stack_id)
    if not StackRun.objects.filter(pk=run.pk, finished_at=None, password_digest=run.password_digest).exists():
        raise Refused("This attempt is over; another one has started.")


def _must_hold(run: StackRun, lock_id: str) -> None:
    held = StateLock.objects.filter(stack_id=run.stack_id).first()
    if held is None:
        raise Refused("Take the lock before you write the state.")
    if (held.lock_id, held.run_id) != (lock_id, run.pk):
        raise Held(held.info)


def _must_follow(newest: StateVersion | None, serial: int, lineage: str) -> None:
    if newest is None:
        return
    if newest.lineage != lineage:
        raise Refused(f"This state has the lineage {lineage}, the stack's is {newest.lineage}.")
    if serial <= newest.serial:
        raise Refused(f"This state has the serial {serial}, the stack is at {newest.serial}.")


def _examine(content: bytes, md5: str) -> tuple[int, str, int]:
    """Serial, lineage and the number of resources."""
    if md5 and hashlib.md5(content, usedforsecurity=False).hexdigest() != md5:
        raise Unreadable("The MD5 of the state does not match.")
    found = _object(content)
    serial, lineage, resources = found.get("serial"), found.get("lineage"), found.get("resources") or []
    if found.get("version") != FORMAT or type(serial) is not int or not 0 <= serial < 2**63:
        raise Unreadable("This is not a version 4 state with a serial.")
    if not isinstance(lineage, str) or not 0 < len(lineage) <= LONGEST_ID or not isinstance(resources, list):
        raise Unreadable("This state has no lineage.")
    managed = [each for each in resources if isinstance(each, dict) and each.get("mode") != "data"]
    return serial, lineage, sum(len(each.get("instances") or []) for each in managed)


def _lock_info(body: bytes) -> dict[str, str]:
    """What Terraform says of itself, its own words only and none of them long."""
    found = _object(body)
    info = {word: found[word][:LONGEST_WORD] for word in INFO if isinstance(found.get(word), str)}
    if not 0 < len(info.get("ID", "")) <= LONGEST_ID:
        raise Unreadable("A lock has an ID.")
    return info


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unreadable("Send a JSON object.")
    return found
