"""The limits on guessing, kept in the database so that they hold over every process and thread.

A try is counted before it is judged and forgiven when it was right. So the limit holds for guesses at the same moment:
whoever is not counted is not judged.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from apps.accounts.models import FailedSignIn, User
from apps.core.clock import now
from apps.core.concurrency.locks import lock_words

logger = logging.getLogger(__name__)
WINDOW = timedelta(minutes=15)
PER_NAME_AND_ADDRESS = 5
PER_ADDRESS = 30
TOO_MANY = "Too many failed attempts. Wait fifteen minutes, or ask an operator."


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many tries of a kind may fail within WINDOW: of a name from an address, from an address, of a name."""

    name_and_address: int
    address: int
    name: int


ALLOWED = {
    # Of a name far more than the others: guessing from many addresses is slowed, and nobody locks a person out alone.
    FailedSignIn.Kind.PASSWORD: Allowance(PER_NAME_AND_ADDRESS, PER_ADDRESS, 100),
    # Only somebody with the password comes to the second factor, so few tries lock out nobody else.
    FailedSignIn.Kind.CODE: Allowance(5, 30, 10),
    # Mails that somebody else asked for: enough to try again, too few to be a nuisance.
    FailedSignIn.Kind.MAIL: Allowance(3, 10, 3),
    # Of nodes with tokens. Many may stand behind one address and come at once; one that was right is forgotten.
    FailedSignIn.Kind.ENROL: Allowance(5, 100, 10),
}


def _kept(username: str) -> str:
    """The name as the table keeps it: whatever its case, as people sign in with either; no longer than a real one, and
    without what PostgreSQL refuses to store.
    """
    return username.replace("\0", "").lower()[:150]


def _is_blocked(kind: FailedSignIn.Kind, tried: str, address: str) -> bool:
    allowed = ALLOWED[kind]
    recent = FailedSignIn.objects.filter(kind=kind, at__gt=now() - WINDOW).filter(
        Q(username=tried) | Q(address=address)
    )
    pairs = list(recent.values_list("username", "address")[: allowed.name + allowed.address])
    from_here = [name for name, origin in pairs if origin == address]
    return (
        from_here.count(tried) >= allowed.name_and_address
        or len(from_here) >= allowed.address
        or sum(name == tried for name, _ in pairs) >= allowed.name
    )


@transaction.atomic
def take_try(*, kind: FailedSignIn.Kind, username: str, address: str) -> bool:
    """Count a try that will now be judged; False when too many failed and this one must wait, unjudged and uncounted.

    1. Wait for others who try the same name, or from the same address.
    2. Refuse when the failures within WINDOW are as many as are allowed.
    3. Count this one, and forget those that no longer count.
    """
    tried = _kept(username)
    lock_words([f"sign-in as {tried}", f"sign-in from {address}"])
    if _is_blocked(kind, tried, address):
        return False
    FailedSignIn.objects.filter(at__lt=now() - WINDOW).delete()
    FailedSignIn.objects.create(kind=kind, username=tried, address=address)
    return True


def forgive(*, kind: FailedSignIn.Kind, username: str, address: str) -> None:
    """Whoever got it right from here was the right person: their earlier slips no longer count."""
    FailedSignIn.objects.filter(kind=kind, username=_kept(username), address=address).delete()


def log_refusal(why: str, *, username: str, address: str) -> None:
    """Tell the log that a try was refused, for whoever watches it: a line each, a row of the record would fill it.

    A name that nobody has is not repeated: people type their password where the name belongs.
    """
    found = User.objects.filter(username__iexact=_kept(username)).values_list("username", flat=True).first()
    who = "an unknown person" if found is None else ascii(found)
    logger.warning("sign-in refused: %s for %s from %s", why, who, ascii(address))
