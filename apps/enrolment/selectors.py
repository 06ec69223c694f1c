"""What operators read of enrolment: tokens that wait, certificates of a node, authorities. Others read none."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.enrolment.rotating import still_on
from apps.fleet.certificates import authorities
from apps.fleet.models import Authority, EnrolmentToken, NodeCertificate


def tokens(actor: Actor) -> QuerySet[EnrolmentToken]:
    """Tokens that can still be used, the newest first."""
    rows = EnrolmentToken.objects.select_related("fleet").filter(used_at=None, expires_at__gt=now())
    return rows if actor.is_operator else rows.none()


def certificates(actor: Actor, node: str) -> QuerySet[NodeCertificate]:
    """What was signed or revoked for a node of this name, the newest first."""
    rows = NodeCertificate.objects.select_related("authority").filter(node_name=node).order_by("-pk")
    return rows if actor.is_operator else rows.none()


@dataclass(frozen=True, slots=True)
class Believed:
    """An authority, whether it signs, and how many nodes would be cut off without it."""

    row: Authority
    signs: bool
    nodes: int


def believed(actor: Actor) -> list[Believed]:
    """The authorities that count, the oldest first."""
    rows = authorities.believed() if actor.is_operator else []
    return [Believed(row, row is rows[-1], still_on(row)) for row in rows]
