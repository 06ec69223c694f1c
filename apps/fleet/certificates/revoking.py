"""Certificates that count no more: those of a node that is revoked or deleted."""

from __future__ import annotations

from datetime import datetime, timedelta

from apps.core.clock import now
from apps.fleet.certificates.models import EnrolmentToken, NodeCertificate
from apps.fleet.models import Node

# How long a certificate is remembered of which nobody knows when it ends.
LONGEST = timedelta(days=3650)


def revoke(node: Node, by: str, shown: str = "", shown_ends_at: datetime | None = None) -> int:
    """Revoke every certificate of a node that still counts, in the caller's transaction; returns how many.

    `shown` is the SHA-256 (hex) of the one that the node showed last: it may be of another authority. Tokens that would
    let the node in again go as well.
    """
    instant = now()
    EnrolmentToken.objects.filter(node_name=node.name, used_at=None).delete()
    known = NodeCertificate.objects.filter(node_name=node.name)
    if shown and not known.filter(sha256=shown).exists():
        NodeCertificate.objects.get_or_create(
            sha256=shown,
            defaults={
                "node": node,
                "node_name": node.name,
                "issued_at": instant,
                "ends_at": shown_ends_at or instant + LONGEST,
            },
        )
    counting = known.filter(revoked_at=None, ends_at__gt=instant)
    return counting.update(revoked_at=instant, revoked_by=by[:150])
