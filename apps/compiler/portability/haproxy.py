"""What HAProxy cannot do for a route: routes are defined by what it does, but for what only clouds have.

It copies requests only by an agent that speaks its own protocol (SPOE). Debian packages none, and Spillway runs no
other programs beside HAProxy.
"""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.model.shared import Route
from apps.compiler.portability.incompatibilities import Incompatibility, Target, refused

MIRROR = (
    "HAProxy copies requests only with an agent of its own protocol (SPOE), and none is packaged.",
    "Serve the route from Google Cloud alone, or leave mirror out.",
)


def unsupported_in_route(route: Route) -> Iterator[Incompatibility]:
    """Copies of requests."""
    if route.mirror_pool_id is not None:
        yield refused(Target.HAPROXY, route, "mirror", "mirror", *MIRROR)
