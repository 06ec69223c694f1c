"""DEFINE: which kinds are declared as shapes."""

from __future__ import annotations

from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.pool import PoolSpec

SHAPES: dict[str, type[Shape]] = {
    "Pool": PoolSpec,
}
