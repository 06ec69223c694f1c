"""One at a time: a fleet is claimed with a lease by database time and an attempt number as a fence."""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q

from apps.core.clock import database_now
from apps.rollouts.models import FleetSync

# A worker that dies is missed after this long; one that lives renews three times within it.
LEASE = timedelta(seconds=15)
RENEW_SECONDS = 4.0


class ClaimLost(Exception):
    """Another worker has the fleet now: what this one still wants to write is not written."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on one fleet until the lease ends; `attempt` is never given twice."""

    fleet_id: int
    holder: str
    attempt: int


def take(fleet_id: int) -> Claim | None:
    """Claim the fleet, or None while somebody else has it (who will see what is to be done before leaving)."""
    holder = f"{socket.gethostname()[:40]}:{os.getpid()}:{threading.get_ident() % 10**9}"
    with transaction.atomic():
        instant = database_now()
        FleetSync.objects.get_or_create(fleet_id=fleet_id)
        free = Q(claimed_until=None) | Q(claimed_until__lt=instant)
        taken = FleetSync.objects.filter(free, fleet_id=fleet_id).update(
            claimed_by=holder, claimed_until=instant + LEASE, attempt=F("attempt") + 1
        )
        if not taken:
            return None
        return Claim(fleet_id, holder, FleetSync.objects.values_list("attempt", flat=True).get(fleet_id=fleet_id))


def renew(claim: Claim) -> None:
    """A full lease again; raises ClaimLost when another attempt was begun."""
    until = database_now() + LEASE
    if not FleetSync.objects.filter(fleet_id=claim.fleet_id, attempt=claim.attempt).update(claimed_until=until):
        raise ClaimLost(f"attempt {claim.attempt} on fleet {claim.fleet_id} is over")


def release(claim: Claim) -> None:
    """Give the fleet back, unless it is another's already."""
    FleetSync.objects.filter(fleet_id=claim.fleet_id, attempt=claim.attempt).update(claimed_by="", claimed_until=None)


def lock(claim: Claim) -> FleetSync:
    """The row, locked until the end of the transaction; raises ClaimLost when the attempt is no longer ours."""
    sync = FleetSync.objects.select_for_update().filter(fleet_id=claim.fleet_id, attempt=claim.attempt).first()
    if sync is None:
        raise ClaimLost(f"attempt {claim.attempt} on fleet {claim.fleet_id} is over")
    return sync
