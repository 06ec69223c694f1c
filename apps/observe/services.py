"""OBSERVE, the writes: what nodes said, in the rows that pages and rollouts read."""

from __future__ import annotations

from datetime import datetime

from apps.core.clock import now
from apps.core.events import publish_after_commit
from apps.drivers.proxy.contract import NodeState
from apps.observe.models import NodeReport

REPORT_FIELDS = (
    "seen_at", "generation", "digest", "on_disk", "haproxy_version", "agent_version", "boot_id", "workers", "serving",
    "reloads", "drift", "error", "last_contact_error",
)  # fmt: skip


def report_of(node_id: int, state: NodeState, seen_at: datetime) -> NodeReport:
    """The row, not stored, that says what the node said at `seen_at`."""
    return NodeReport(
        node_id=node_id,
        seen_at=seen_at,
        generation=state.generation,
        digest=state.digest[:64],
        on_disk=state.on_disk[:64],
        haproxy_version=state.haproxy_version[:40],
        agent_version=state.agent_version[:40],
        boot_id=state.boot_id[:64],
        workers=state.workers,
        serving=state.serving,
        reloads=state.reloads,
        drift=list(state.drift),
        error=state.last_error[:1000],
        last_contact_error="",
    )


def note_report(*, node_id: int, state: NodeState) -> None:
    """Store what a node said just now, as after a push; pages are told after commit."""
    NodeReport.objects.bulk_create(
        [report_of(node_id, state, now())],
        update_conflicts=True,
        unique_fields=["node"],
        update_fields=REPORT_FIELDS,
    )
    publish_after_commit("nodes", node=node_id)
