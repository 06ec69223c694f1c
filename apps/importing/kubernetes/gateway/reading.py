"""Gateways and the routes that attach to them."""

from __future__ import annotations

from apps.importing.kubernetes.objects.pools import Pools
from apps.importing.kubernetes.world import World


def read_gateways(world: World, pools: Pools) -> None:
    """Every Gateway of the file."""
