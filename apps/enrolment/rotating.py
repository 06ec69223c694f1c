"""The authority is replaced while nodes stay reachable: a new one signs, every node goes over, the old one goes."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from apps.accounts.actors import Actor, platform_actor
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import NotFound
from apps.definitions.services import KINDS
from apps.fleet.certificates import authorities
from apps.fleet.models import Authority, Node, NodeCertificate


def still_on(authority: Authority) -> int:
    """Nodes that have a certificate of this authority and were not seen with one of a newer authority yet."""
    counting = NodeCertificate.objects.filter(authority=authority, revoked_at=None, ends_at__gt=now())
    newer = NodeCertificate.objects.filter(
        authority__gt=authority.pk, node__report__certificate_sha256=F("sha256"), revoked_at=None
    )
    return Node.objects.filter(pk__in=counting.values("node")).exclude(pk__in=newer.values("node")).count()


@transaction.atomic
def rotate(*, actor: Actor, reason: str = "") -> Authority:
    """A new authority; nodes get certificates of it within minutes. Raises Conflict while a rotation is under way."""
    KINDS["Node"].may_change(actor)
    row = authorities.rotate(actor.name)
    audit.record(
        actor=actor, action="rotate", kind="Authority", object_id=row.pk, label="authority of nodes", reason=reason
    )
    return row


@transaction.atomic
def retire(*, actor: Actor, authority_id: int, reason: str = "") -> Authority:
    """Believe an authority no more, also while nodes have its certificates: those are cut off until enrolled again.

    Raises NotFound, Conflict for the one that signs, Forbidden.
    """
    KINDS["Node"].may_change(actor)
    if not Authority.objects.filter(pk=authority_id).exists():
        raise NotFound("There is no such authority.")
    row = authorities.retire(authority_id)
    after = {"nodes_cut_off": still_on(row)}
    audit.record(
        actor=actor, action="retire", kind="Authority", object_id=row.pk, label="authority of nodes", after=after,
        reason=reason,
    )  # fmt: skip
    return row


def under_way() -> bool:
    """Whether more than one authority is believed."""
    return len(authorities.believed()) > 1


def finish() -> None:
    """Retire the authorities before the newest that no node needs any more."""
    for row in authorities.believed()[:-1]:
        if not still_on(row):
            retire(actor=platform_actor(), authority_id=row.pk, reason="Every node has a certificate of the newest.")
