"""Where a backend is rendered: in which region, and on how many nodes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from apps.compiler.routing import number_of


@dataclass(frozen=True, slots=True)
class OwnRegion:
    """The region's id, and its nodes; none where the snapshot knows no nodes, which then have no peers either."""

    region_id: str = ""
    nodes: int = 0

    @property
    def number(self) -> int:
        """The region in one word, as cookies have it."""
        return number_of(self.region_id) if self.region_id else 0

    def part_of(self, whole: int) -> int:
        """One node's part of what all of them together may."""
        return ceil(whole / max(1, self.nodes))
