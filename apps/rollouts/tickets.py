"""Session tickets: each fleet has three secrets, which are renewed by the clock and given to its nodes.

They are no part of a revision: revisions are kept, and a rollback must bring no old key back. A node encrypts with the
current secret and reads tickets of all three; each is next, current and previous in turn, 12 hours each. What is lost
on the way is found by the next sweep, because each node says which secrets it has.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from apps.core.clock import now
from apps.core.secrets.keys import must_fit
from apps.core.secrets.sealing import Unsealable, seal, unseal
from apps.drivers.proxy.contract import NodeTarget, ProxyError
from apps.drivers.proxy.registry import open_driver
from apps.fleet.models import Node
from apps.observe.collect.readings import addresses_of, target_of
from apps.rollouts.models import TicketSecrets
from apps.rollouts.push.due import OLD_REPORT

logger = logging.getLogger(__name__)
TICKETS_TASK = "apps.rollouts.tasks.bring_ticket_secrets"
PERIOD = timedelta(hours=12)
COUNT, BYTES = 3, 32
AT_ONCE = 32
Secrets = tuple[str, ...]


def fleets_to_sweep(instant: datetime) -> list[int]:
    """Fleets whose secrets are due, or of which a node has others; without nodes that know of tickets there are none.

    One query whatever the number of fleets.
    """
    due = Q(fleet__ticket_secrets=None) | Q(fleet__ticket_secrets__renewed_at__lte=instant - PERIOD)
    differs = ~Q(report__ticket_secrets=F("fleet__ticket_secrets__digest"))
    return sorted(set(_answering(instant).filter(due | differs).values_list("fleet_id", flat=True)))


def bring(*, fleet_id: int) -> None:
    """Renew what is due, then give it to every node that has something else."""
    instant = now()
    if not _answering(instant).filter(fleet_id=fleet_id).exists():
        return
    given = _renewed(fleet_id, instant)
    rows = _answering(instant).filter(fleet_id=fleet_id).exclude(report__ticket_secrets=digest_of(given))
    targets = [target_of(address) for address in addresses_of(rows.only("name", "url"))]
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="tickets") as threads:
        list(threads.map(lambda target: _give(target, given), targets))


def digest_of(given: Secrets) -> str:
    """What a node answers that has these."""
    return hashlib.sha256("".join(given).encode()).hexdigest()


def _answering(instant: datetime) -> QuerySet[Node]:
    """Nodes that answered lately and whose agent knows of tickets."""
    return Node.objects.filter(report__seen_at__gte=instant - OLD_REPORT).exclude(report__ticket_secrets="")


@transaction.atomic
def _renewed(fleet_id: int, instant: datetime) -> Secrets:
    """The secrets as they are to be now; after a long break none of the old ones is left."""
    row = TicketSecrets.objects.select_for_update().filter(fleet_id=fleet_id).first()
    if row is None:
        TicketSecrets.objects.get_or_create(fleet_id=fleet_id, defaults=_columns(_fresh(COUNT), instant))
        row = TicketSecrets.objects.select_for_update().get(fleet_id=fleet_id)
    old = _opened(row)
    steps = COUNT if old is None else min(COUNT, (instant - row.renewed_at) // PERIOD)
    if old is not None and steps <= 0:
        return old
    given = (*(old or ()), *_fresh(steps))[-COUNT:]
    TicketSecrets.objects.filter(pk=row.pk).update(**_columns(given, instant))
    return given


def _fresh(count: int) -> Secrets:
    return tuple(secrets.token_hex(BYTES) for _ in range(count))


def _columns(given: Secrets, instant: datetime) -> dict[str, object]:
    return {"sealed": seal(json.dumps(given).encode()), "digest": digest_of(given), "renewed_at": instant}


def _opened(row: TicketSecrets) -> Secrets | None:
    """None where they were sealed with a key that is lost: nothing depends on old ones."""
    try:
        return tuple(json.loads(unseal(row.sealed)))
    except Unsealable:
        must_fit()
        return None


def _give(target: NodeTarget, given: Secrets) -> None:
    try:
        open_driver(target).give_ticket_secrets(given)
    except ProxyError as error:
        logger.warning("session tickets: %s; the next sweep tries again", error.message)
    except Exception:
        logger.exception("session tickets: %s answered strangely; the next sweep tries again", target.name)
