"""Every column that holds sealed bytes, and sealing them anew with the newest key.

A model is known here by its label only, since the kernel imports no app; a test finds the column that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db.models import Model, QuerySet

from apps.core.secrets.sealing import Unsealable, is_newest, seal, unseal

SEALED: dict[str, tuple[str, ...]] = {
    "definitions.AlertChannel": ("sealed_secret",),
    "definitions.Certificate": ("encrypted_key",),
    "definitions.CertificateAuthority": ("sealed_hmac_key", "sealed_account_key"),
    "definitions.CertificateOrder": ("sealed_key",),
    "definitions.StoredPlan": ("sealed_objects",),
    "fleet.Authority": ("sealed_key", "sealed_client"),
    "logs.LogForward": ("header_value",),
    "retries.KeyedRequest": ("sealed_body",),
    "rollouts.Revision": ("snapshot", "bundle"),
    "rollouts.TicketSecrets": ("sealed",),
    "schedules.SigningSecret": ("sealed", "previous"),
    "schedules.Trigger": ("sealed_secret", "previous_secret"),
    "stacks.StackRevision": ("document", "secrets"),
    "stacks.StackRun": ("plan", "plan_file"),
    "stacks.StateVersion": ("content",),
    "webhooks.Webhook": ("secret", "previous_secret"),
}
# Sealed words inside of a JSON document (apps/accounts/sign_in/allauth_adapter.py).
SEALED_WORDS: dict[str, tuple[str, tuple[str, ...]]] = {"mfa.Authenticator": ("data", ("secret", "seed"))}
CHECK = "core.KeyCheck"
AT_ONCE = 200


@dataclass(slots=True)
class Progress:
    """How far one column is: rows looked at, rows sealed anew, rows that no key opens."""

    column: str
    rows: int
    looked_at: int = 0
    sealed: int = 0
    lost: int = 0


def seal_anew() -> Iterator[Progress]:
    """Seal everything with the newest key, and say how far it is after each batch.

    It may be stopped and begun again at any time: what has the newest key already is left alone, and a row that
    somebody wrote meanwhile as well. The row by which processes check their key comes last.
    """
    for label, columns in SEALED.items():
        for column in columns:
            yield from _column(label, column)
    for label, (column, words) in SEALED_WORDS.items():
        yield from _column(label, column, words)
    yield from _column(CHECK, "sealed")


def _column(label: str, column: str, words: tuple[str, ...] = ()) -> Iterator[Progress]:
    rows: QuerySet[Any] = apps.get_model(label)._default_manager.order_by("pk")
    keys = list(rows.values_list("pk", flat=True))
    progress = Progress(f"{label}.{column}", len(keys))
    for start in range(0, len(keys), AT_ONCE):
        for pk in keys[start : start + AT_ONCE]:  # one at a time: a bundle may be large
            _row(rows.model, pk, column, words, progress)
        yield progress


def _row(model: type[Model], pk: Any, column: str, words: tuple[str, ...], progress: Progress) -> None:
    progress.looked_at += 1
    before = model._default_manager.filter(pk=pk).values_list(column, flat=True).first()
    try:
        after = _words_anew(before, words) if words else _anew(before)
    except Unsealable:
        progress.lost += 1
        return
    if after is not None:
        progress.sealed += model._default_manager.filter(**{"pk": pk, column: before}).update(**{column: after})


def _anew(sealed: bytes | memoryview | None) -> bytes | None:
    """The same under the newest key; None where there is nothing to do. Raises Unsealable."""
    return None if not sealed or is_newest(sealed) else seal(unseal(sealed))


def _words_anew(document: Any, words: tuple[str, ...]) -> dict[str, Any] | None:
    """As above, for the words of a document that are sealed."""
    if not isinstance(document, dict):
        return None
    anew = {word: _anew(str(document[word]).encode()) for word in words if word in document}
    changed = {word: sealed.decode() for word, sealed in anew.items() if sealed is not None}
    return {**document, **changed} if changed else None
