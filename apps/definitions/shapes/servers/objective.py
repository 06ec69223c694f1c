"""The shape of an objective: how many requests of a pool or a route must succeed, and be answered in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler.grammar import GrammarError
from apps.definitions.shapes.base.shape import About, Check, Data, Shape
from apps.definitions.shapes.base.words import real, whole

# Nodes count the requests of pools up to these bounds, so between them nobody knows.
LATENCIES_MS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 1000, 2000, 5000, 10000)
LOWEST, HIGHEST = 50, 99.999


def _is_counted(value: int | None, _: Data) -> None:
    if value is not None and value not in LATENCIES_MS:
        raise GrammarError("choice", f"Use one of {', '.join(map(str, LATENCIES_MS))}: nodes count up to these.")


@dataclass(frozen=True, slots=True)
class ServiceObjective(Shape):
    """What users may expect of a pool or a route over 28 days; what may fail is its error budget."""

    component: ClassVar[str] = "ServiceObjective"

    availability: Annotated[
        Annotated[float, real(LOWEST, HIGHEST)],
        About(
            "Percent of the requests that must not be refused and not end with 5xx.",
            "Availability",
            "%, such as 99.9.",
            99.9,
        ),
    ]
    latency_ms: Annotated[
        Annotated[int, whole(LATENCIES_MS[0], LATENCIES_MS[-1])] | None,
        Check(_is_counted),
        About(
            f"ms. One of {', '.join(map(str, LATENCIES_MS))}. Default: no objective for latency.",
            "Answer within",
            "ms: 1, 2 or 5, with zeros, up to 10000; also 400 and 600.",
        ),
    ] = None
    latency_share: Annotated[
        Annotated[float, real(LOWEST, HIGHEST)],
        About("Percent of the requests that must be answered within `latency_ms`.", "For", "% of the requests."),
    ] = 99.0
