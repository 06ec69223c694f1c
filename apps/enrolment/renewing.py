"""Certificates are renewed when a third of their life is left, and when the authorities have changed.

The console asks the node for the request of a new key, over the connection on which both know each other, signs it, and
gives it back. The node needs no way to the console, and one that was revoked is not even spoken to. What fails is tried
again, ever more slowly; ten days are left for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from django.db import transaction
from django.db.models import F, Q, QuerySet

from apps.core.clock import now
from apps.core.concurrency.backoff import pause_after
from apps.core.secrets.sealing import Unsealable
from apps.drivers.proxy.contract import NodeTarget, ProxyError
from apps.drivers.proxy.registry import open_driver
from apps.fleet.certificates import authorities
from apps.fleet.models import Node, NodeCertificate
from apps.observe.collect.readings import addresses_of, target_of

logger = logging.getLogger(__name__)
RENEW_TASK = "apps.enrolment.tasks.renew"
SEEN_WITHIN = timedelta(minutes=1)
AT_ONCE, THREADS = 200, 32
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)
KEPT = timedelta(days=30)
T = TypeVar("T")


def due(instant: datetime) -> QuerySet[NodeCertificate]:
    """Certificates that nodes use and that have to be renewed; of nodes that answered lately. Two queries."""
    believed = authorities.believed()
    if not believed:
        return NodeCertificate.objects.none()
    old = Q(ends_at__lte=instant + authorities.RENEWED_BEFORE)
    if authorities.signing(believed, instant) == believed[-1]:
        old |= ~Q(authority=believed[-1]) | ~Q(believes=authorities.digest_of(authorities.bundle(believed)))
    used = NodeCertificate.objects.filter(
        node__report__certificate_sha256=F("sha256"), node__report__seen_at__gte=instant - SEEN_WITHIN
    )
    rested = Q(next_renewal_at=None) | Q(next_renewal_at__lte=instant)
    return used.filter(old, rested, revoked_at=None, authority__isnull=False).select_related("node")


def renew() -> int:
    """Renew what is due, at most AT_ONCE; returns how many nodes took a new certificate.

    1. Claim, so that no other worker does the same. 2. Ask the nodes for their requests. 3. Sign and store. 4. Give.
    A worker that dies in between costs the wait for the next try: the node asks for the same key again.
    """
    instant = now()
    rows = {row.node: row for row in due(instant).order_by("ends_at")[:AT_ONCE] if row.node and _claim(row, instant)}
    nodes = list(rows)
    targets = {address.node_id: target_of(address) for address in addresses_of(nodes)}
    with ThreadPoolExecutor(THREADS, thread_name_prefix="renew") as threads:
        asked = threads.map(lambda node: _tried(targets[node.pk], _request), nodes)
        gives = []
        for node, request in zip(nodes, asked, strict=True):
            if request is None:
                continue
            try:
                signed = _signed(rows[node], node, request)
            except (ValueError, Unsealable) as error:
                logger.warning("certificate of %s: %s", node.name, error)
                continue
            if signed is not None:
                row, believed = signed
                gives.append(threads.submit(_tried, targets[node.pk], partial(_give, row.text, believed)))
        return sum(give.result() is not None for give in gives)


def _claim(row: NodeCertificate, instant: datetime) -> bool:
    pause = pause_after(row.renewals + 1, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
    mine = NodeCertificate.objects.filter(pk=row.pk, renewals=row.renewals)
    return bool(mine.update(renewals=min(row.renewals + 1, 1000), next_renewal_at=instant + pause))


@transaction.atomic
def _signed(old: NodeCertificate, node: Node, request: str) -> tuple[NodeCertificate, str] | None:
    """A new certificate for the old one; None where the node was revoked or deleted while it was asked."""
    list(Node.objects.select_for_update().filter(pk=node.pk))  # who revokes or deletes a node holds its row
    if not NodeCertificate.objects.filter(pk=old.pk, revoked_at=None).exists():
        return None
    return authorities.sign(request=request, node=node)


def _request(target: NodeTarget) -> str:
    return open_driver(target).request_certificate()


def _give(certificate: str, believed: str, target: NodeTarget) -> str:
    return open_driver(target).give_certificate(certificate, believed)


def _tried(target: NodeTarget, act: Callable[[NodeTarget], T]) -> T | None:
    """None where the node did not do it; the next sweep that is due tries again."""
    try:
        return act(target)
    except ProxyError as error:
        logger.warning("certificate of %s: %s", target.name, error.message)
    except Exception:
        logger.exception("certificate of %s: it answered strangely", target.name)
    return None


def prune(instant: datetime) -> int:
    """Forget certificates that ended a month ago; returns how many."""
    return NodeCertificate.objects.filter(ends_at__lt=instant - KEPT).delete()[0]
