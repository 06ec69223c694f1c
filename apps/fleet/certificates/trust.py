"""What a console needs at each connection to a node: what it shows, whom it believes, what was revoked."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from apps.core.clock import now
from apps.core.secrets.sealing import Unsealable
from apps.fleet.certificates import authorities
from apps.fleet.certificates.authorities import Client
from apps.fleet.certificates.models import NodeCertificate

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Trust:
    """`client` is None while no node was ever enrolled; `believed` are certificates (PEM), `revoked` SHA-256 (hex)."""

    client: Client | None = None
    believed: str = ""
    revoked: frozenset[str] = frozenset()


def trust() -> Trust:
    """As it is now. Two queries."""
    revoked = frozenset(
        NodeCertificate.objects.filter(revoked_at__isnull=False, ends_at__gt=now()).values_list("sha256", flat=True)
    )
    rows = authorities.believed()
    if not rows:
        return Trust(revoked=revoked)
    try:
        return Trust(authorities.client_of(rows[0]), authorities.bundle(rows), revoked)
    except Unsealable:
        logger.error("no key of this console opens the authority of its nodes, so enrolled nodes cannot be reached")
        return Trust(revoked=revoked)
