"""What people and pipelines send to have servers replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from apps.definitions.shapes.base.shape import About, Distinct, Shape
from apps.definitions.shapes.base.words import LISTED, ByName, real, whole

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class ReplacementPlan(Shape):
    """Which servers, how many at once, how long each step may take (in seconds), and how many may fail."""

    region: Annotated[
        ByName | None, About("Only servers of this region. Default: every region, one after another.", "Region")
    ] = None
    servers: Annotated[
        tuple[ByName, ...],
        LISTED,
        Distinct(),
        About("Names of servers. Default: every server that is ready.", "Servers"),
    ] = ()
    batch_size: Annotated[
        int,
        whole(1, 100),
        About("How many servers of a region may be out at once, those that are down included.", "Servers at once"),
    ] = 1
    max_failures: Annotated[
        int, whole(0, 100), About("How many servers may fail before the replacement stops. Default: none.", "Failures")
    ] = 0
    drain_s: Annotated[
        int,
        whole(0, DAY_S),
        About("Seconds to wait for a server's connections to end. Then it is taken out.", "Wait for connections"),
    ] = 60
    replace_s: Annotated[
        int,
        whole(1, 7 * DAY_S),
        About("Seconds that a batch may take to be replaced. Then its servers failed.", "Time to replace"),
    ] = 1800
    health_s: Annotated[
        int,
        whole(1, DAY_S),
        About("Seconds until every node must find a replaced server healthy.", "Time to be healthy"),
    ] = 120
    watch_s: Annotated[
        int, whole(0, DAY_S), About("Seconds for which servers must stay healthy before the next batch.", "Watch")
    ] = 10
    max_error_rate: Annotated[
        float,
        real(0, 1),
        About("The highest share of 5xx (0 to 1) while a server is watched; 1 allows any.", "Highest error rate"),
    ] = 0.5
