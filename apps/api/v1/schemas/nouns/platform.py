"""How far regions are from each other, as nodes measured it."""

from __future__ import annotations

from apps.api.v1.schemas import words


class MeasuredLatency(words.Shown):
    """The round trip to another region, as nodes measured it."""

    to = words.name()
    ms = words.number(0, 60_000)
    at = words.instant()


class RegionFacts(words.Shown):
    """How far other regions are."""

    measured_latency = MeasuredLatency(many=True)
