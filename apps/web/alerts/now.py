"""What is firing, what was, one alert with all it affects, acknowledging it, and silences."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.accounts.models import Account
from apps.alerts import selectors, services
from apps.alerts.evaluate.causes import RANK
from apps.alerts.models import Alert, Notification, Told
from apps.alerts.selectors import active_findings
from apps.core.clock import now
from apps.core.errors import Conflict, Invalid
from apps.definitions.models import AlertChannel
from apps.definitions.shapes.base.words import instant_text
from apps.definitions.shapes.operations.alert_watches import BUILT_IN
from apps.logs.filters import word_of
from apps.logs.searching import LONGEST_WINDOW
from apps.web.bulk.selecting import Noun, each_selected
from apps.web.kit.pages import PageRequest, page, post_page, show

PER_PAGE = 50
ALERTS = Noun("alert", "web:alert", "web:alerts")
SEVERITY_MARKS = {
    "critical": ("bad", "bad", "Critical"),
    "warning": ("warn", "warn", "Warning"),
    "info": ("idle", "unknown", "Info"),
}
# Of which objects there are requests, by the word of the filter; and which of them show what a watch looks for.
REQUESTS_OF = {"pool": "pool", "route": "route", "node": "node", "region": "region"}
SHOWN_BY = {
    "pool_down": "why:no_server",
    "pool_errors": "status>=500",
    "pool_refusing": "why:over_limit",
    "pool_at_limit": "why:overflow,over_limit,held",
    "pool_queue": "queue>0",
}
# What a rule finds began some time before it was found.
BEFORE = timedelta(minutes=5)
# Seconds → words, in the order of the form.
LASTING = {"3600": "an hour", "14400": "4 hours", "86400": "a day", "604800": "a week"}


@page
def index(request: PageRequest) -> HttpResponse:
    """What is firing for the actor's account, the worst first; `?state=resolved` shows what did, newest first."""
    resolved = request.GET.get("state") == "resolved"
    rows = selectors.own_alerts(request.actor).filter(resolved_at__isnull=not resolved)
    before = request.GET.get("before", "")
    if resolved and before.isascii() and before.isdecimal() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: PER_PAGE + 1] if resolved else rows.order_by("-weight", "opened_at")[: PER_PAGE + 1])
    silenced = selectors.silenced(found)
    context: dict[str, Any] = {
        "rows": [_row(row, row.pk in silenced) for row in found[:PER_PAGE]],
        "more": len(found) > PER_PAGE,
        "next_before": found[PER_PAGE - 1].pk if resolved and len(found) > PER_PAGE else None,
        "before": before,
        "resolved": resolved,
        "firing": selectors.own_alerts(request.actor).filter(resolved_at=None).count(),
        "silences": list(selectors.silences(request.actor).filter(account=request.actor.account)),
        "lasting": LASTING,
        "rules": sorted({*BUILT_IN, *(rule.name for rule in selectors.rules(request.actor))}),
        "channels": AlertChannel.objects.filter(account=request.actor.account, enabled=True).exists(),
    }
    return show(request, "pages/alerts/list.html", context)


def _row(row: Alert, silenced: bool) -> dict[str, Any]:
    findings = active_findings(row)
    objects = list(dict.fromkeys((each.object_kind, each.name) for each in findings))
    return {
        "alert": row,
        "mark": SEVERITY_MARKS[row.severity],
        "silenced": silenced,
        "objects": objects[:4],
        "more": len(objects) - 4,
        "rank": RANK[row.severity],
    }


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One alert: what it affects, who was told, who is at it."""
    row = selectors.alert(request.actor, pk)
    told = Told.objects.filter(alert=row).select_related("channel").order_by("channel__name")
    threads = {thread for each in told for thread in each.threads}
    sent = Notification.objects.filter(channel__account=row.account_id, thread__in=threads)
    context = {
        "alert": row,
        "mark": SEVERITY_MARKS[row.severity],
        "silenced": row.pk in selectors.silenced([row]),
        "findings": list(_findings(row)),
        "told": told,
        "sent": sent.select_related("channel").order_by("-id")[:30],
        "lasting": LASTING,
        "own": row.account_id == request.actor.account.pk,
    }
    return show(request, "pages/alerts/detail.html", context)


def _findings(alert: Alert) -> Iterator[dict[str, Any]]:
    """What is wrong, with the filter and the time of the requests that show it; without a filter where none do."""
    findings = list(alert.findings.all())
    owners = {owner.name: owner for owner in Account.objects.filter(name__in={each.owner for each in findings})}
    for each in findings:
        until = each.ended_at or now()
        word = REQUESTS_OF.get(each.object_kind)
        yield {
            "finding": each,
            "mark": SEVERITY_MARKS[each.severity],
            "asks": f"{word_of(word, each.name)} {SHOWN_BY.get(each.watches, '')}".strip() if word else "",
            "owner": owners.get(each.owner),
            "since": max(each.since - BEFORE, until - LONGEST_WINDOW),
            "until": until,
        }


@post_page
def acknowledge(request: PageRequest, pk: int) -> HttpResponse:
    """Somebody is at it."""
    try:
        services.acknowledge(actor=request.actor, alert_id=pk)
    except Conflict as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, "Acknowledged. Channels that wait for this are not told.")
    return redirect("web:alert", pk)


@post_page
def acknowledge_several(request: PageRequest) -> HttpResponse:
    """Somebody is at all the ticked ones; each that is refused is named with its reason."""
    request.actor.may_write("alerts")

    def acknowledge_one(row: Alert) -> None:
        services.acknowledge(actor=request.actor, alert_id=row.pk)

    return each_selected(request, ALERTS, selectors.alerts(request.actor), acknowledge_one, "acknowledged")


@post_page
def silence(request: PageRequest) -> HttpResponse:
    """Tell nobody of what the form names, for a while."""
    lasting = request.POST.get("lasting", "")
    spec = {
        "rule": request.POST.get("rule", "").strip(),
        "objects": request.POST.get("objects", "").strip(),
        "ends_at": instant_text(now() + timedelta(seconds=int(lasting if lasting in LASTING else "3600"))),
    }
    try:
        services.make_silence(actor=request.actor, spec=spec, reason=request.POST.get("reason", ""))
    except Invalid as error:
        messages.error(request, " ".join(each.detail for each in error.field_errors))
    else:
        messages.success(request, "Silenced. Alerts stay visible here; nobody is told of them.")
    return redirect("web:alerts")


@post_page
def end_silence(request: PageRequest, pk: int) -> HttpResponse:
    """End a silence now."""
    services.end_silence(actor=request.actor, silence_id=pk)
    messages.success(request, "The silence has ended. Channels are told of what is still firing.")
    return redirect("web:alerts")
