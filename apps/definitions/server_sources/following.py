"""Which backends have a source, and what is known of it."""

from __future__ import annotations

from datetime import datetime

from apps.core.clock import now
from apps.core.queue import enqueue_on_commit
from apps.definitions.models import Backend, Heartbeat, ServerSource
from apps.definitions.shapes.servers.source import Kind

FIND_TASK = "apps.definitions.tasks.find_servers"
WAKE_EXPIRES_S = 10.0


def follow_source(backend: Backend) -> None:
    """Ask its source from now on, at once, as one that has not failed yet; none is asked where it has none."""
    if not backend.servers_from.startswith(f"{Kind.HEARTBEAT}://"):
        Heartbeat.objects.filter(backend=backend).delete()
    if not backend.servers_from:
        ServerSource.objects.filter(backend=backend).delete()
        return
    ServerSource.objects.update_or_create(backend=backend, defaults={"next_at": now(), "short": 0, "failures": 0})
    enqueue_on_commit(FIND_TASK)


def due(moment: datetime) -> bool:
    """Whether a source is to be asked."""
    return ServerSource.objects.filter(next_at__lte=moment).exists()
