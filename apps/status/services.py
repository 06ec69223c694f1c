"""What people write for visitors: incidents, planned maintenance, and how it goes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max

from apps.accounts.actors import Actor
from apps.accounts.selectors import only
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, Invalid
from apps.definitions.models import StatusPage
from apps.definitions.selectors import status_pages
from apps.definitions.shapes.base.reading import read_or_raise
from apps.status import selectors
from apps.status.models import DeletedIncident, Incident, IncidentUpdate
from apps.status.shapes import IncidentSpec, UpdateSpec
from apps.status.states import PLANNED, RESOLVED, SCHEDULED, STATUSES, State

NOUN = "incidents"
MOST_OPEN, MOST_KEPT, MOST_UPDATES = 20, 500, 100
FURTHEST_BACK, FURTHEST_AHEAD = timedelta(days=90), timedelta(days=365)
LONGEST_MAINTENANCE = timedelta(days=30)
KEPT_FOR = timedelta(days=400)


@transaction.atomic
def open_incident(*, actor: Actor, page_id: int, spec: object, reason: str = "") -> Incident:
    """Tell visitors of a page, by the fields of IncidentSpec. Raises NotFound, Forbidden, Invalid."""
    actor.may_write(NOUN)
    page = only(status_pages(actor).select_for_update(of=("self",)), page_id)
    wanted, moment = read_or_raise(IncidentSpec, spec, "/spec"), now()
    _reject_impossible(page, wanted, moment)
    planned = wanted.ends_at is not None
    impact = State.MAINTENANCE.value if planned else wanted.impact or State.DEGRADED.value
    status = SCHEDULED if planned else wanted.status or "investigating"
    row = Incident.objects.create(
        page=page,
        number=next_number(page),
        title=wanted.title,
        impacts=dict.fromkeys(wanted.components, impact),
        status=status,
        begins_at=wanted.begins_at or moment,
        ends_at=wanted.ends_at,
        resolved_at=moment if status == RESOLVED else None,
        created_by=actor.name[:150],
    )
    _write(row, (PLANNED if planned else STATUSES)[status], wanted.text, moment, actor.name)
    record(actor, "create", row, after=row.document(), reason=reason)
    return row


@transaction.atomic
def write_update(*, actor: Actor, incident_id: int, spec: object, reason: str = "") -> Incident:
    """Tell how it goes, by the fields of UpdateSpec; from then on no rule closes it.

    An incident that was resolved is open again where another status is said. Raises NotFound, Forbidden, Invalid, and
    Conflict for maintenance that is over.
    """
    actor.may_write(NOUN)
    rows = selectors.incidents(actor).prefetch_related(None).select_for_update(of=("self",))
    row, moment = only(rows, incident_id), now()
    wanted = read_or_raise(UpdateSpec, spec, "/spec")
    before, resolves = row.document(), wanted.status == RESOLVED and row.resolved_at is None
    if row.ends_at is not None:
        _tell_of_maintenance(row, wanted, moment)
    else:
        row.status = wanted.status or row.status
        row.resolved_at = (row.resolved_at or moment) if row.status == RESOLVED else None
        if wanted.impact:
            row.impacts = dict.fromkeys(row.impacts, wanted.impact)
    # The last word has room always: else nobody could say that it is over.
    if row.updates.count() >= MOST_UPDATES and not resolves:
        raise Invalid([FieldError("", "quota", f"An incident has at most {MOST_UPDATES} updates; begin another one.")])
    row.automatic = False
    row.save()
    _write(row, row.word_at(moment), wanted.text, moment, actor.name)
    record(actor, "update", row, before=before, after=row.document(), reason=reason)
    return row


@transaction.atomic
def delete_incident(*, actor: Actor, incident_id: int, reason: str = "") -> None:
    """Take an incident off its page, with all that was written; no rule opens it again. Raises NotFound, Forbidden."""
    actor.may_write(NOUN)
    row = selectors.incident(actor, incident_id)
    record(actor, "delete", row, before=row.document(), reason=reason)
    if row.alert_id is not None:
        DeletedIncident.objects.get_or_create(page=row.page, alert_id=row.alert_id)
    row.delete()


def prune(instant: datetime, limit: int = 1000) -> None:
    """Forget incidents that were over long ago, some at a time."""
    old = Incident.objects.exclude(resolved_at=None).filter(resolved_at__lt=instant - KEPT_FOR)
    planned = Incident.objects.filter(ends_at__lt=instant - KEPT_FOR)
    for rows in (old, planned):
        Incident.objects.filter(pk__in=list(rows.order_by("pk").values_list("pk", flat=True)[:limit])).delete()


def next_number(page: StatusPage) -> int:
    """The number of the page's next incident; the caller has locked the page."""
    return int(page.incidents.aggregate(last=Max("number"))["last"] or 0) + 1


def _tell_of_maintenance(row: Incident, wanted: UpdateSpec, moment: datetime) -> None:
    if row.over_at(moment):
        raise Conflict("This maintenance is over; open an incident if something is wrong.")
    if wanted.impact or wanted.status not in (None, RESOLVED):
        name = "impact" if wanted.impact else "status"
        detail = f"Leave {name} out: maintenance goes by the clock. Use status resolved where it is over already."
        raise Invalid([FieldError(f"/spec/{name}", "planned", detail)])
    if wanted.status == RESOLVED:
        row.resolved_at = moment


def _reject_impossible(page: StatusPage, wanted: IncidentSpec, moment: datetime) -> None:
    errors, known = [], {each["name"] for each in page.components}
    for index, name in enumerate(wanted.components):
        if name not in known:
            errors.append(FieldError(f"/spec/components/{index}", "unknown", f"The page has no component {name}."))
    errors += _errors_of_times(wanted, moment)
    rows = page.incidents.all()
    if selectors.not_over(rows, moment).count() >= MOST_OPEN:
        errors.append(FieldError("", "quota", f"{MOST_OPEN} incidents of this page are open; resolve some of them."))
    elif rows.count() >= MOST_KEPT:
        errors.append(FieldError("", "quota", f"The page has {MOST_KEPT} incidents; delete old ones first."))
    if errors:
        raise Invalid(errors)


def _errors_of_times(wanted: IncidentSpec, moment: datetime) -> list[FieldError]:
    begin, end = wanted.begins_at or moment, wanted.ends_at
    if end is None:
        if moment - FURTHEST_BACK <= begin <= moment:
            return []
        detail = f"Begin within the last {FURTHEST_BACK.days} days; what is planned needs ends_at as well."
        return [FieldError("/spec/begins_at", "out_of_range", detail)]
    if not moment < end <= moment + FURTHEST_AHEAD:
        return [FieldError("/spec/ends_at", "out_of_range", f"End within the next {FURTHEST_AHEAD.days} days.")]
    if end - begin > LONGEST_MAINTENANCE:
        detail = f"End at most {LONGEST_MAINTENANCE.days} days after the beginning."
        return [FieldError("/spec/ends_at", "out_of_range", detail)]
    return []


def _write(row: Incident, word: str, text: str, moment: datetime, name: str) -> None:
    IncidentUpdate.objects.create(incident=row, at=moment, word=word, text=text, written_by=name[:150])


def record(actor: Actor, action: str, row: Incident, **fields: Any) -> None:
    """Note in the audit log of the page's account what became of an incident."""
    account = row.page.account
    label = f"{account.name}/{row.page.name}/{row.number}"
    audit.record(actor=actor, action=action, kind="Incident", object_id=row.pk, label=label, account=account, **fields)
