"""The shape of a fleet's rollout settings: when and in which waves a change reaches its nodes, and what halts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.definitions.shapes.base.shape import SORTED, About, Distinct, Shape
from apps.definitions.shapes.base.words import Boolean, at_most, real, whole

MOST_WAVES = 10


@dataclass(frozen=True, slots=True)
class RolloutSettingsSpec(Shape):
    """Of each change; going back to a revision and repairs reach all nodes at once."""

    component: ClassVar[str] = "RolloutSettings"

    waves: Annotated[
        tuple[Annotated[int, whole(1, 99)], ...],
        Distinct(),
        at_most(MOST_WAVES, "waves"),
        SORTED,
        About(
            "Percent of the nodes that run a change after each wave, at least one node; a last wave adds the rest. "
            "Default: all nodes at once.",
            "Waves",
            example=10,
            most=MOST_WAVES,
        ),
    ] = ()
    soak_seconds: Annotated[
        int,
        whole(10, 3600),
        About("Seconds for which the nodes of a wave serve traffic before the next wave.", "Soak time"),
    ] = 60
    max_error_increase: Annotated[
        float,
        real(0.1, 100),
        About(
            "Percentage points. A change is rolled back when a pool's share of 5xx responses on the updated nodes is "
            "higher by more than this than before, and than on the other nodes.",
            "Max. error increase",
        ),
    ] = 1.0
    max_slowdown: Annotated[
        float,
        real(1.1, 100),
        About(
            "A change is rolled back when a pool's servers take more than this many times as long to respond on the "
            "updated nodes as before, and as on the other nodes.",
            "Max. slowdown",
        ),
    ] = 3.0
    stage: Annotated[
        int,
        whole(1, 20),
        About(
            "A change reaches this fleet when fleets of lower stages run it and have served traffic with it for their "
            "soak time. Fleets of one stage get it at the same time.",
            "Stage",
        ),
    ] = 1
    runtime_changes: Annotated[
        Boolean,
        About(
            "Whether changes without a reload, such as routes and weights, use waves and stages too.", "Runtime changes"
        ),
    ] = False
