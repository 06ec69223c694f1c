"""Requests that may be sent again: claim a key, do the work and keep its answer in one transaction, or let go.

What holds, whatever crashes when:

1. A key is claimed, and the claim committed, before the work begins: of many requests at once, one works.
2. The work, its audit entry and its answer are one transaction. A process that dies before the commit leaves
   nothing but the claim, which is free again after a minute; one that dies after it leaves an answer to repeat.
3. The commit asks for the claim's `turn`. An attempt that was so slow that another one took its key over is undone.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, InProgress, Invalid
from apps.core.secrets.sealing import Unsealable, seal, unseal
from apps.retries.models import KeyedRequest

KEPT = timedelta(hours=24)
LONGEST_WORK = timedelta(seconds=60)
SWEPT_AT_ONCE = 100
IN_FLIGHT = "A request with this Idempotency-Key is being worked on; ask again in a moment."


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a keyed request."""

    row: int
    turn: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def claim(*, actor: Actor, key: str, fingerprint: str) -> Claim | Answer:
    """The right to do the work, or the answer that the same request had before; commits at once.

    Raises Invalid when the key belongs to another request, InProgress while another attempt works on it.
    """
    _forget_old(actor, key)
    began, turn = now(), secrets.token_hex(16)
    row, made = KeyedRequest.objects.get_or_create(
        account=actor.account,
        caller=_caller(actor),
        key=key,
        defaults={"fingerprint": fingerprint, "turn": turn, "began_at": began, "created_at": began},
    )
    if made:
        return Claim(row.pk, turn)
    if row.fingerprint != fingerprint:
        raise Invalid(
            [FieldError("/Idempotency-Key", "key_used", "This key belongs to another request; make a new one.")]
        )
    if row.status is not None:
        return _answer(row)
    return _taken_over(row, turn)


def _taken_over(row: KeyedRequest, turn: str) -> Claim:
    """The turn of an attempt that never came back. Raises InProgress while it may still come."""
    if now() - row.began_at < LONGEST_WORK:
        raise InProgress(IN_FLIGHT, wait_s=10)
    mine = KeyedRequest.objects.filter(pk=row.pk, turn=row.turn, status=None)
    if not mine.update(turn=turn, began_at=now()):
        raise InProgress(IN_FLIGHT, wait_s=10)
    return Claim(row.pk, turn)


def _answer(row: KeyedRequest) -> Answer:
    try:
        body = zlib.decompress(unseal(row.sealed_body))
    except Unsealable:
        raise Conflict("This request was done, but its answer can no longer be read; read the object.") from None
    return Answer(int(row.status or 0), dict(row.headers), body)


def keep(mine: Claim, answer: Answer) -> None:
    """Store the answer, inside the transaction of the work. Raises Conflict when another attempt has the turn now."""
    changed = KeyedRequest.objects.filter(pk=mine.row, turn=mine.turn, status=None).update(
        status=answer.status, headers=dict(answer.headers), sealed_body=seal(zlib.compress(answer.body))
    )
    if not changed:
        raise Conflict("This attempt took so long that another one took its place; nothing of it was stored.")


def let_go(mine: Claim) -> None:
    """Free the key: nothing was done, and the answer is not worth repeating."""
    KeyedRequest.objects.filter(pk=mine.row, turn=mine.turn, status=None).delete()


def _forget_old(actor: Actor, key: str) -> None:
    """Forget this key when its day is over, and some others: each request that comes takes old ones away."""
    old = KeyedRequest.objects.filter(created_at__lt=now() - KEPT)
    this = old.filter(account=actor.account, caller=_caller(actor), key=key).values_list("pk", flat=True)
    oldest = old.order_by("created_at").values_list("pk", flat=True)[:SWEPT_AT_ONCE]
    if found := [*this, *oldest]:
        KeyedRequest.objects.filter(pk__in=found).delete()


def _caller(actor: Actor) -> str:
    return actor.token or actor.name
