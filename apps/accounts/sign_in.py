"""The limit on failed sign-ins, kept in the database so that it holds over every process and thread."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q

from apps.accounts.models import FailedSignIn
from apps.core.clock import now

WINDOW = timedelta(minutes=15)
PER_NAME_AND_ADDRESS = 5
PER_ADDRESS = 30
# Far above the others: guessing from many addresses is slowed, and nobody locks a person out with one machine.
PER_NAME = 100


def _kept(username: str) -> str:
    """The name as the table keeps it: no longer than a real one, and without what PostgreSQL refuses to store."""
    return username.replace("\0", "")[:150]


def is_blocked(*, username: str, address: str) -> bool:
    """Whether the next try must wait: too many failures of this name from here, from here, or of this name."""
    tried = _kept(username)
    recent = FailedSignIn.objects.filter(at__gt=now() - WINDOW).filter(Q(username=tried) | Q(address=address))
    pairs = list(recent.values_list("username", "address")[: PER_NAME + PER_ADDRESS])
    from_here = [name for name, place in pairs if place == address]
    return (
        from_here.count(tried) >= PER_NAME_AND_ADDRESS
        or len(from_here) >= PER_ADDRESS
        or sum(name == tried for name, _ in pairs) >= PER_NAME
    )


def note_failure(*, username: str, address: str) -> None:
    """Remember a failed try, and forget those that no longer count."""
    FailedSignIn.objects.filter(at__lt=now() - WINDOW).delete()
    FailedSignIn.objects.create(username=_kept(username), address=address)


def note_success(*, username: str, address: str) -> None:
    """Whoever got in from here was the right person: their earlier slips no longer count."""
    FailedSignIn.objects.filter(username=_kept(username), address=address).delete()
