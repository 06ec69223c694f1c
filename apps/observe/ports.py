"""The port of metrics: apps above this one set, in `ready()`, what stands beside the metrics of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class Families(Protocol):
    """All metrics of one app, at the instant of the call."""

    def __call__(self) -> Iterable[Metric]: ...


METRICS: dict[str, Families] = {}
