"""Whether this process has the key with which the database was sealed; without it nothing may be written.

A console with another key would take changes that no worker can compile, and say 200 to them. A worker with another
key would push to nodes without the certificates that it cannot open, under a word that other fleets do not know.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse

from apps.core.errors import Unavailable
from apps.core.models import KeyCheck
from apps.core.secrets.sealed_columns import SEALED
from apps.core.secrets.sealing import Unsealable, is_newest, seal, unseal

logger = logging.getLogger(__name__)
READS = frozenset({"GET", "HEAD", "OPTIONS"})
OPENS_NOTHING = (
    "SPILLWAY_SECRET_KEY of this console opens nothing of what its database holds, so nothing is written. "
    "Give it the key that it had, or name that one in SPILLWAY_SECRET_KEY_FALLBACKS."
)
FALLBACK = "sealed with a fallback: run manage.py rotate_keys"
WAIT_S = 30
PAUSE_S = 5.0

_fitting: set[tuple[str, ...]] = set()


def must_fit() -> None:
    """Raise Unavailable when this process has a wrong key; asks the database once, and as long as it is wrong."""
    if _keys() not in _fitting and said() == OPENS_NOTHING:
        raise Unavailable(OPENS_NOTHING, WAIT_S)


def wait_until_it_fits(is_over: Callable[[float], object]) -> bool:
    """True when this process has the right key; False when `is_over`, which waits some seconds, says so first.

    A database that is away is waited for as well: until it answers nobody knows.
    """
    while True:
        try:
            must_fit()
        except (Unavailable, DatabaseError) as error:
            logger.error("this process does nothing yet: %s", error)
        else:
            return True
        if is_over(PAUSE_S):
            return False


def said() -> str:
    """`ok`, or what is wrong with the key of this process."""
    row = KeyCheck.objects.filter(pk=1).first() or _first()
    if row is None or not _opens(row.sealed):
        return OPENS_NOTHING
    _fitting.add(_keys())
    return "ok" if is_newest(row.sealed) else FALLBACK


def trust() -> None:
    """Take the present keys as those of the database, without asking it."""
    _fitting.add(_keys())


def _keys() -> tuple[str, ...]:
    return (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


def _first() -> KeyCheck | None:
    """The row of a database that has none yet; None where others sealed with another key already."""
    stored = [_newest(label, column) for label, columns in SEALED.items() for column in columns]
    known = [sealed for sealed in stored if sealed]
    if known and not any(_opens(sealed) for sealed in known):
        return None
    return KeyCheck.objects.get_or_create(pk=1, defaults={"sealed": seal(b"spillway")})[0]


def _newest(label: str, column: str) -> bytes | None:
    rows = apps.get_model(label)._default_manager.exclude(**{f"{column}__isnull": True}).order_by("-pk")
    newest: bytes | None = rows.values_list(column, flat=True).first()
    return newest


def _opens(sealed: bytes | memoryview) -> bool:
    try:
        unseal(sealed)
    except Unsealable:
        return False
    return True


class KeyFits:
    """Middleware: what may write is refused with the reason while the key is wrong."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in READS:
            must_fit()
        return self.get_response(request)
