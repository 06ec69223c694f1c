"""Alert rules open and resolve incidents on the pages that name them: one for each alert, on what it touches.

1. An alert of a rule that a page names begins to touch a component: visitors are told, in words that say nothing of
   pools. Not where it is silenced, nor while all that it touches is under planned maintenance.
2. It touches others, or worse: so does the incident.
3. It touches nothing any more: the incident is resolved, unless a person wrote about it; then it is the person's.
4. It touches something again: what a rule resolved is open again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from apps.accounts.actors import platform_actor
from apps.alerts.models import Alert, Finding
from apps.alerts.telling.planning import silenced_alerts
from apps.definitions.models import StatusPage
from apps.status.components import Component, components_of, pool_states
from apps.status.models import Incident, IncidentUpdate
from apps.status.selectors import not_over
from apps.status.services import MOST_OPEN, next_number, record
from apps.status.states import RESOLVED, STATUSES, State, together, worst

# What goes up and down all day would bury everything else.
MOST_OPENED, OPENED_WITHIN = 20, timedelta(days=1)
OPENED = "This was noticed automatically. Nobody has written about it yet."
CLOSED = "It works again, as far as was measured automatically."
AGAIN = "This was noticed again automatically."
# As often as that, so that people still have room for their updates.
MOST_AGAIN = 20
# What visitors read where the alert says this of a pool; whatever else a rule watches slows them down.
_OF_WATCHES = {
    "pool_down": ("does not work", State.MAJOR_OUTAGE),
    "pool_refusing": ("refuses requests", State.PARTIAL_OUTAGE),
    "pool_errors": ("answers with errors", State.DEGRADED),
    "objective_burning_fast": ("answers with errors or slowly", State.DEGRADED),
    "objective_burning": ("answers with errors or slowly", State.DEGRADED),
}
_SLOW = ("may be slow", State.DEGRADED)
Touched = Mapping[int, Mapping[str, State]]  # alert → component → how
CLOSED_BY_RULE = Q(automatic=True, resolved_at__isnull=False)


@dataclass(frozen=True, slots=True)
class Said:
    """A finding of an alert, in words of visitors."""

    row: Finding
    alert: Alert
    words: str
    state: State


def follow(instant: datetime) -> None:
    """Open, change and resolve the incidents of all pages that name rules; any process may, at any time."""
    pages = list(StatusPage.objects.exclude(rules=[]).filter(account__suspended_at=None))
    left = Incident.objects.filter(automatic=True, resolved_at=None).values_list("page_id", flat=True)
    named = {page.pk for page in pages}
    pages += StatusPage.objects.filter(pk__in=set(left) - named)
    if not pages:
        return
    findings = _findings({page.account_id for page in pages}, {rule for page in pages for rule in page.rules})
    components = components_of(pages) if findings else {}
    for page in pages:
        own = [each for each in findings if each.row.account_id == page.account_id and each.row.rule in page.rules]
        _follow(page, _touched(components.get(page.pk, []), own), own, instant)


def _findings(accounts: Collection[int], rules: Collection[str]) -> list[Said]:
    rows = Finding.objects.filter(account__in=accounts, rule__in=rules, object_kind="pool", ended_at=None)
    found = [(row, row.alert) for row in rows.select_related("alert").order_by("id") if row.alert is not None]
    measured = pool_states({row.object_id for row, _ in found}) if found else {}
    return [Said(row, alert, *_words(row.watches, measured.get(row.object_id))) for row, alert in found]


def _words(watches: str, measured: State | None) -> tuple[str, State]:
    """What is down in some regions alone is served by the others."""
    in_regions = watches == "pool_down" and measured == State.DEGRADED
    return _SLOW if in_regions else _OF_WATCHES.get(watches, _SLOW)


def _touched(components: Collection[Component], findings: Collection[Said]) -> Touched:
    found: dict[int, dict[str, State]] = defaultdict(dict)
    by_alert: dict[int, dict[int, State]] = defaultdict(dict)
    for each in findings:
        states, pool = by_alert[each.alert.pk], each.row.object_id
        states[pool] = worst([each.state, states.get(pool, State.OPERATIONAL)])
    for alert, states in by_alert.items():
        for component in components:
            if component.pools & states.keys():
                parts = [states.get(pk, State.OPERATIONAL) for pk in component.pools]
                found[alert][component.name] = together(parts)
    return found


def _follow(page: StatusPage, touched: Touched, findings: Collection[Said], instant: datetime) -> None:
    open_rows = list(page.incidents.filter(automatic=True, resolved_at=None))
    known = set(page.incidents.filter(alert__in=touched).exclude(CLOSED_BY_RULE).values_list("alert_id", flat=True))
    for row in open_rows:
        now_touched = touched.get(row.alert_id or 0)
        if not now_touched:
            _resolve(row, instant)
        elif row.impacts != (impacts := {**now_touched}):
            Incident.objects.filter(pk=row.pk, automatic=True).update(impacts=impacts)
    known |= set(page.deleted_incidents.filter(alert__in=touched).values_list("alert_id", flat=True))
    fresh = touched.keys() - known
    if fresh:
        _open(page, {pk: touched[pk] for pk in sorted(fresh)}, findings, instant)


def _open(page: StatusPage, touched: Touched, findings: Collection[Said], instant: datetime) -> None:
    by_alert: dict[int, list[Said]] = defaultdict(list)
    for each in findings:
        by_alert[each.alert.pk].append(each)
    alerts = {pk: by_alert[pk][0].alert for pk in touched}
    rows = {pk: [each.row for each in by_alert[pk]] for pk in touched}
    silent = silenced_alerts(list(alerts.values()), rows, instant)
    for pk in touched.keys() - silent:
        with transaction.atomic():
            locked = StatusPage.objects.select_for_update().get(pk=page.pk)
            _open_one(locked, alerts[pk], touched[pk], max(by_alert[pk], key=_rank).words, instant)


def _rank(each: Said) -> int:
    return list(State).index(each.state)


def _open_one(page: StatusPage, alert: Alert, impacts: Mapping[str, State], words: str, instant: datetime) -> None:
    rows = page.incidents.all()
    going_on = not_over(rows, instant)
    worked_on = {name for row in going_on.exclude(ends_at=None).filter(begins_at__lte=instant) for name in row.impacts}
    if going_on.count() >= MOST_OPEN or impacts.keys() <= worked_on:
        return
    if page.deleted_incidents.filter(alert=alert).exists():
        return
    if (before := rows.filter(alert=alert).first()) is not None:
        _open_again(before, impacts, instant)
        return
    if rows.exclude(alert=None).filter(begins_at__gt=instant - OPENED_WITHIN).count() >= MOST_OPENED:
        return
    names = sorted(impacts)
    more = f"{names[0][:70]} and {len(names) - 1} more have a problem"
    row = Incident.objects.create(
        page=page,
        number=next_number(page),
        title=f"{names[0][:70]} {words}" if len(names) == 1 else more,
        impacts={**impacts},
        status="investigating",
        begins_at=instant,
        automatic=True,
        alert=alert,
    )
    IncidentUpdate.objects.create(incident=row, at=instant, word=STATUSES["investigating"], text=OPENED)
    record(platform_actor(), "create", row, after=row.document())


def _open_again(row: Incident, impacts: Mapping[str, State], instant: datetime) -> None:
    """The alert goes on and touches the page anew; visitors are not to read that it works."""
    if row.updates.filter(text=AGAIN).count() >= MOST_AGAIN:
        return
    before, status = row.document(), "investigating"
    over = Incident.objects.filter(CLOSED_BY_RULE, pk=row.pk)
    if over.update(status=status, resolved_at=None, impacts={**impacts}):
        IncidentUpdate.objects.create(incident=row, at=instant, word=STATUSES[status], text=AGAIN)
        row.refresh_from_db()
        record(platform_actor(), "update", row, before=before, after=row.document())


def _resolve(row: Incident, instant: datetime) -> None:
    with transaction.atomic():
        still = Incident.objects.filter(pk=row.pk, automatic=True, resolved_at=None)
        if still.update(status=RESOLVED, resolved_at=instant):
            IncidentUpdate.objects.create(incident=row, at=instant, word=STATUSES[RESOLVED], text=CLOSED)
            fresh = Incident.objects.select_related("page__account").get(pk=row.pk)
            record(platform_actor(), "update", fresh, before=row.document(), after=fresh.document())
