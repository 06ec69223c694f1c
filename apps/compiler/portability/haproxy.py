"""What HAProxy cannot do for a route: routes are defined by what it does, but for what only clouds have."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.model.shared import Route
from apps.compiler.portability.incompatibilities import Incompatibility
from apps.compiler.portability.table.asking import told
from apps.compiler.portability.table.cells import Column


def unsupported_in_route(route: Route) -> Iterator[Incompatibility]:
    """Copies of requests; what the table says of a version is asked where builds are known (`checks/builds.py`)."""
    if route.mirror_pool_id is not None:
        yield told(Column.HAPROXY_2_6, route, "mirror", "mirror")
