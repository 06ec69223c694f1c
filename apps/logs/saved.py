"""Saved searches: a filter under a name that everybody in its account sees, and what is measured of it each minute.

A saved search never changes, so that its history always means the same: delete it, and save another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import OuterRef, QuerySet, Subquery

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.accounts.quotas import lock_quotas
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import FieldError, Invalid
from apps.definitions.selectors import only
from apps.drivers.logs.contract import NUMBER_FIELDS
from apps.logs.filters import LONGEST, FilterError, parse
from apps.logs.models import MetricPoint, SavedSearch
from apps.members import reading

NOUN = "saved-searches"
MOST_SEARCHES, MOST_METRICS = 50, 10
# A value that is older was not followed by others: nobody measures now.
FRESH = timedelta(minutes=5)
Measure = SavedSearch.Measure
MEASURED = tuple(name for name in NUMBER_FIELDS if name != "status")
PERCENTILES = (50, 75, 90, 95, 99)
_FIELDS = ("filter", "metric")
_OF_METRIC = {
    Measure.COUNT: (), Measure.RATE: (), Measure.SHARE: ("among",), Measure.PERCENTILE: ("of", "percentile"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """A search as it was sent, read."""

    filter: str = ""
    measure: str = ""
    of: str = ""
    percentile: int = 0
    among: str = ""


def searches(actor: Actor) -> QuerySet[SavedSearch]:
    """Saved searches by account and name; operators see those of customers too."""
    return actor.visible(SavedSearch.objects.select_related("account")).order_by("account__name", "name")


def search(actor: Actor, pk: int) -> SavedSearch:
    """One of them. Raises NotFound."""
    return only(searches(actor), pk)


def measured(rows: QuerySet[SavedSearch]) -> Iterator[tuple[SavedSearch, float | None, datetime | None]]:
    """Those that are measured, each with its last value and its minute; None where nobody measures any more."""
    recent = MetricPoint.objects.filter(search=OuterRef("pk"), minute__gte=now() - FRESH, value__isnull=False)
    newest = recent.order_by("-minute")
    for row in rows.exclude(measure="").annotate(
        last_value=Subquery(newest.values("value")[:1]), last_minute=Subquery(newest.values("minute")[:1])
    ):
        yield row, row.last_value, row.last_minute


def history(row: SavedSearch, start: datetime, end: datetime) -> list[MetricPoint]:
    """The minutes of a metric, the oldest first."""
    return list(row.points.filter(minute__gte=start, minute__lt=end).order_by("minute"))


def save_search(*, actor: Actor, account: object = None, name: object, spec: object, reason: str = "") -> SavedSearch:
    """Save `{filter, metric?}` under a name. Raises Forbidden, Invalid."""
    actor.may_write(NOUN)
    owner = reading.account_named(actor, account)
    errors: list[FieldError] = []
    plain, wanted = reading.name(name, errors), _read(spec, errors)
    if errors:
        raise Invalid(errors)
    try:
        return _save(actor, owner, plain, wanted, reason)
    except IntegrityError as error:
        raise Invalid([FieldError("/name", "taken", "There is a saved search with this name.")]) from error


@transaction.atomic
def _save(actor: Actor, owner: Account, name: str, wanted: Wanted, reason: str) -> SavedSearch:
    lock_quotas(owner)
    own = SavedSearch.objects.filter(account=owner)
    if own.count() >= MOST_SEARCHES:
        raise Invalid([FieldError("", "quota", f"An account has at most {MOST_SEARCHES} saved searches; delete one.")])
    if wanted.measure and own.exclude(measure="").count() >= MOST_METRICS:
        detail = f"An account measures at most {MOST_METRICS} saved searches; delete one, or leave metric out."
        raise Invalid([FieldError("/spec/metric", "quota", detail)])
    row = SavedSearch.objects.create(
        account=owner,
        name=name,
        filter=wanted.filter,
        measure=wanted.measure,
        of=wanted.of,
        percentile=wanted.percentile,
        among=wanted.among,
        created_by=actor.name[:150],
    )
    _record(actor, "create", row, after=document(row), reason=reason)
    return row


@transaction.atomic
def delete_search(*, actor: Actor, search_id: int, reason: str = "") -> None:
    """Delete a saved search and its history. Raises NotFound, Forbidden."""
    actor.may_write(NOUN)
    row = search(actor, search_id)
    _record(actor, "delete", row, before=document(row), reason=reason)
    row.delete()


def document(row: SavedSearch) -> dict[str, Any]:
    """What people, programs and the audit log read of it."""
    fields = _OF_METRIC[Measure(row.measure)] if row.measure else ()
    metric = {"measure": row.measure, **{name: getattr(row, name) for name in fields}} if row.measure else None
    return {"filter": row.filter, "metric": metric}


def unit(row: SavedSearch) -> str:
    """The unit of the metric's values."""
    if row.measure == Measure.PERCENTILE:
        return "ms" if row.of.endswith("_ms") else "bytes"
    return {Measure.COUNT: "per minute", Measure.RATE: "per second", Measure.SHARE: "%"}.get(Measure(row.measure), "")


def title(row: SavedSearch) -> str:
    """What is measured, in words."""
    if row.measure == Measure.PERCENTILE:
        return f"{row.percentile}th percentile of {row.of}"
    if row.measure == Measure.SHARE:
        return f"Share among {row.among or 'all requests'}"
    return Measure(row.measure).label if row.measure else ""


def _read(spec: object, errors: list[FieldError]) -> Wanted:
    if not isinstance(spec, dict):
        errors.append(FieldError("/spec", "not_object", "Send spec as an object: {filter, metric}."))
        return Wanted()
    reading.only_known(spec, _FIELDS, "/spec", errors)
    text = _filter(spec.get("filter", ""), "/spec/filter", errors)
    metric = spec.get("metric")
    if metric is None:
        return Wanted(text)
    if not isinstance(metric, dict):
        errors.append(FieldError("/spec/metric", "not_object", "Send metric as an object, or leave it out."))
        return Wanted(text)
    if metric.get("measure") not in Measure.values:
        detail = f"Choose one of {', '.join(Measure.values)}."
        errors.append(FieldError("/spec/metric/measure", "choice", detail))
        return Wanted(text)
    return _metric(text, Measure(metric["measure"]), metric, errors)


def _metric(text: str, measure: Measure, metric: dict[str, Any], errors: list[FieldError]) -> Wanted:
    reading.only_known(metric, ("measure", *_OF_METRIC[measure]), "/spec/metric", errors)
    if measure == Measure.SHARE:
        return Wanted(text, measure, among=_filter(metric.get("among", ""), "/spec/metric/among", errors))
    if measure != Measure.PERCENTILE:
        return Wanted(text, measure)
    of, percentile = metric.get("of", "total_ms"), metric.get("percentile", 95)
    if of not in MEASURED:
        errors.append(FieldError("/spec/metric/of", "choice", f"Choose one of {', '.join(MEASURED)}."))
    if isinstance(percentile, bool) or percentile not in PERCENTILES:
        detail = f"Choose one of {', '.join(map(str, PERCENTILES))}."
        errors.append(FieldError("/spec/metric/percentile", "choice", detail))
    return Wanted(text, measure, of, percentile)


def _filter(value: object, pointer: str, errors: list[FieldError]) -> str:
    if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
        detail = f"Write a filter of at most {LONGEST} printable characters."
        errors.append(FieldError(pointer, "filter", detail))
        return ""
    try:
        parse(value)
    except FilterError as error:
        errors.append(FieldError(pointer, "filter", error.message))
    return value.strip()


def _record(actor: Actor, action: str, row: SavedSearch, **fields: Any) -> None:
    label = f"{row.account.name}/{row.name}"
    audit.record(
        actor=actor, action=action, kind="SavedSearch", object_id=row.pk, label=label, account=row.account, **fields
    )
