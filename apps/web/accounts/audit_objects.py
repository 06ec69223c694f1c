"""Where the object of an entry is shown: to who may see it, and while it is there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from apps.accounts.actors import Actor
from apps.alerts.models import Alert, Silence
from apps.alerts.selectors import alerts, silences
from apps.audit.models import Entry
from apps.capacity.models import Run
from apps.capacity.selectors import runs as capacity_runs
from apps.definitions.models import AlertRule
from apps.definitions.selectors import alert_rules
from apps.logs.models import SavedSearch
from apps.logs.saved import searches
from apps.replacements.models import Replacement
from apps.replacements.selectors import replacements
from apps.rollouts.models import Rollout
from apps.rollouts.selectors import rollouts
from apps.stacks.models import StackRun
from apps.stacks.selectors import runs as stack_runs
from apps.status.models import Incident
from apps.status.selectors import incidents
from apps.web.finding.kinds import KINDS, Kind
from apps.webhooks.models import Webhook
from apps.webhooks.selectors import webhooks

# By the name that entries have for a kind.
SHOWN = {
    kind.model.__name__: kind
    for kind in (
        *KINDS.values(),
        Kind(Alert, alerts, "alerts", "alert"),
        Kind(AlertRule, alert_rules, "alert-rules"),
        Kind(Incident, incidents, "status-pages", "incident"),
        Kind(Replacement, replacements, "pools", "replacement"),
        Kind(Rollout, rollouts, "rollouts", "rollout"),
        Kind(Run, capacity_runs, "capacity-tests", "capacity-run"),
        Kind(SavedSearch, searches, "saved-searches", "saved-search"),
        Kind(Silence, silences, "alerts"),
        Kind(StackRun, stack_runs, "stacks", "stack-run"),
        Kind(Webhook, webhooks, "webhooks", "webhook"),
    )
}
# Customers read of them, and have no page of them.
OPERATORS_ONLY = frozenset({"Region", "StaticIP"})


def pages_of_objects(actor: Actor, entries: Iterable[Entry]) -> dict[int, str]:
    """Entry (primary key) → the page of its object, where this actor has one. One query per kind."""
    by_kind: dict[str, list[Entry]] = defaultdict(list)
    for each in entries:
        if each.object_kind in SHOWN and (actor.is_operator or each.object_kind not in OPERATORS_ONLY):
            by_kind[each.object_kind].append(each)
    return {
        entry.pk: SHOWN[name].url(row)
        for name, group in by_kind.items()
        for row in SHOWN[name].rows(actor).prefetch_related(None).filter(pk__in=[entry.object_id for entry in group])
        for entry in group
        if entry.object_id == row.pk
    }
