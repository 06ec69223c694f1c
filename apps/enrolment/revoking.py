"""A node's certificates are revoked: from the next connection on no console speaks to it."""

from __future__ import annotations

from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit import services as audit
from apps.core.errors import Conflict, NotFound
from apps.core.events import publish_after_commit
from apps.definitions.services import KINDS
from apps.fleet import selectors as topology
from apps.fleet.certificates.revoking import revoke
from apps.observe.models import NodeReport


@transaction.atomic
def revoke_node(*, actor: Actor, name: str, reason: str = "") -> int:
    """Revoke every certificate of a node, also the one that it showed last, whoever signed it; returns how many.

    Raises NotFound, Forbidden, and Conflict where there is none that counts.
    """
    KINDS["Node"].may_change(actor)
    node = topology.nodes(actor).select_for_update(of=("self",)).filter(name=name).first()
    if node is None:
        raise NotFound("There is no such node.")
    report = NodeReport.objects.filter(node=node).first()
    shown = (report.certificate_sha256, report.certificate_ends_at) if report else ("", None)
    count = revoke(node, actor.name, *shown)
    if not count:
        raise Conflict(f"Node {name} has no valid certificate that could be revoked.")
    after = {"certificates": count}
    audit.record(actor=actor, action="revoke", kind="Node", object_id=node.pk, label=name, after=after, reason=reason)
    publish_after_commit("nodes", node=node.pk)
    return count
