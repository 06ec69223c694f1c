"""What happened to an object in a stretch of time, as far as the actor may know it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.alerts.selectors import own_findings
from apps.audit.selectors import entries
from apps.capacity.selectors import runs
from apps.definitions.models import LoadBalancer, Pool, Route
from apps.definitions.selectors import fleets_of
from apps.fleet.models import Fleet, Node, Region
from apps.rollouts.push.states import RolloutState
from apps.rollouts.selectors import rollouts
from apps.web.capacity.words import mark_of
from apps.web.changes.history import of_object
from apps.web.changes.rows import fields_of, title_of

# Of each kind the newest: more marks than these are no marks.
MOST = 20
# What alerts call an object of each kind.
WATCHED: dict[type, str] = {
    Route: "route",
    Pool: "pool",
    LoadBalancer: "load balancer",
    Node: "node",
    Region: "region",
    Fleet: "fleet",
}
FAILED = (RolloutState.FAILED, RolloutState.ROLLING_BACK, RolloutState.ROLLED_BACK)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at `at`, or from then on; `until` is None for what is a moment or still goes on.

    `kind` is change, rollout, test or alert; `tone` is good, warn, bad or empty, `shape` a symbol of shapes.html.
    """

    at: datetime
    kind: str
    title: str
    url: str
    until: datetime | None = None
    lasts: bool = False
    tone: str = ""
    shape: str = "check"

    def mark(self) -> dict[str, Any]:
        """As `components/chart.html` takes it; a span without an end goes on."""
        span = {"until": self.until.timestamp() if self.until else None} if self.lasts else {}
        return {"at": self.at.timestamp(), "kind": self.kind, "tone": self.tone, "text": self.title, **span}


def events_of(actor: Actor, row: Any, since: datetime) -> list[Event]:
    """The newest events of each kind since then, newest first. About six queries."""
    found = [*_changes(actor, row, since), *_alerts(actor, row, since)]
    if actor.is_operator:
        found += _rollouts(actor, row, since)
    if isinstance(row, Pool | Route):
        found += _tests(actor, row, since)
    return sorted(found, key=lambda event: event.at, reverse=True)


def _changes(actor: Actor, row: Any, since: datetime) -> Iterator[Event]:
    for entry in entries(actor).filter(of_object(row), at__gte=since)[:MOST]:
        differing = fields_of(entry)
        fields = f": {'; '.join(differing)}" if differing else ""
        url = reverse("web:change", args=[entry.pk])
        yield Event(entry.at, "change", f"{title_of(entry)} by {entry.actor}{fields}", url)


def _alerts(actor: Actor, row: Any, since: datetime) -> Iterator[Event]:
    for finding in own_findings(actor, _watched(row), since)[:MOST]:
        url = reverse("web:alert", args=[finding.alert_id])
        tone = "bad" if finding.severity == "critical" else "warn"
        yield Event(finding.since, "alert", finding.title, url, finding.ended_at, lasts=True, tone=tone, shape=tone)


def _watched(row: Any) -> list[tuple[str, int]]:
    """What alerts speak of when this object suffers, by kind and primary key."""
    own = (WATCHED[type(row)], row.pk)
    if isinstance(row, Route):
        return [own, *(("pool", share.pool_id) for share in row.shares)]
    if isinstance(row, Region | Fleet):
        return [own, *(("node", pk) for pk in nodes_of(row).values_list("pk", flat=True))]
    return [own]


def nodes_of(row: Region | Fleet) -> QuerySet[Node]:
    """The nodes of a region, of all its fleets, or of one fleet."""
    return Node.objects.filter(fleet__region=row) if isinstance(row, Region) else Node.objects.filter(fleet=row)


def _fleets_of(row: Any) -> list[Fleet]:
    """Fleets whose rollouts touch this object's traffic."""
    if isinstance(row, Node | Fleet):
        return [row.fleet if isinstance(row, Node) else row]
    return list(Fleet.objects.filter(region=row)) if isinstance(row, Region) else fleets_of(row)


def _rollouts(actor: Actor, row: Any, since: datetime) -> Iterator[Event]:
    fleets = [fleet.pk for fleet in _fleets_of(row)]
    rows = rollouts(actor).filter(fleet__in=fleets, created_at__gte=since)
    for each in rows[:MOST]:
        said = f"Rollout {each.pk} on {each.fleet.name}: {each.revision.summary or each.reason}"
        tone = "bad" if each.state in FAILED else ""
        shape = "stop" if tone else "behind" if each.finished_at is None else "check"
        yield Event(each.created_at, "rollout", said, reverse("web:rollout", args=[each.pk]), tone=tone, shape=shape)


def _tests(actor: Actor, row: Pool | Route, since: datetime) -> Iterator[Event]:
    pools = [row.pk] if isinstance(row, Pool) else [share.pool_id for share in row.shares]
    begun = runs(actor).filter(pool__in=pools, started_at__isnull=False)
    for run in begun.filter(Q(ended_at__gte=since) | Q(ended_at=None)).select_related("region")[:MOST]:
        where = f" in {run.region.name}" if run.region else ""
        title = f"Capacity test {run.label}{where}: {mark_of(run)[2].lower()}"
        url = reverse("web:capacity-run", args=[run.pk])
        yield Event(run.started_at or since, "test", title, url, run.ended_at, lasts=True, shape="busy")
