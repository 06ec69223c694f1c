"""Who does the work in a pool, region by region: each server's share beside its due, worst and best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.capacity.use.balance import Balance, Share, balance_of
from apps.definitions.models import Server
from apps.web.kit.figures import share

MINUTES = 10
ENDS = 6  # of a region with many servers the busiest and the idlest are drawn


def who_works(servers: Sequence[Server]) -> dict[str, Any]:
    """What `pages/sizing/shares.html` draws: the last minutes of the servers of a pool. One query."""
    return {"shared": [_region(each) for each in balance_of(servers, minutes=MINUTES)], "minutes": MINUTES}


def _region(each: Balance) -> dict[str, Any]:
    most = max((part.share for part in each.shares), default=0.0)
    parts = [_server(part, most) for part in sorted(each.shares, key=lambda part: -part.ratio)]
    left_out = max(0, len(parts) - 2 * ENDS)
    busiest, idlest = (parts[:ENDS], parts[-ENDS:]) if left_out else (parts, [])
    return {"balance": each, "busiest": busiest, "left_out": left_out, "idlest": idlest}


def _server(part: Share, most: float) -> dict[str, Any]:
    """One server's share as a bar against the busiest one's."""
    return {
        "name": part.server,
        "text": f"{share(part.share)} of {share(part.due)} due",
        "percent": round(100 * part.share / most) if most else 0,
    }
