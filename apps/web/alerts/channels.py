"""Channels: all of them, one with its log, its form, a test, its end."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.alerts import selectors, services
from apps.alerts.models import ChannelState, Notification
from apps.core.errors import Conflict
from apps.definitions.models import AlertChannel
from apps.definitions.selectors import alert_channels, only
from apps.definitions.shapes.operations.alert_channel import TYPES
from apps.web.alerts.forms import ChannelForm
from apps.web.kit.object_forms import Way, copy_of, edit_object, form_for
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import deleted_by_name

PER_PAGE = 25
SHOWN = 500
EVENTS = {
    "firing": ("bad", "bad", "Firing"),
    "resolved": ("good", "check", "Resolved"),
    "test": ("idle", "unknown", "Test"),
}
STATES = {
    "waiting": ("busy", "behind", "Waiting"),
    "delivered": ("good", "check", "Delivered"),
    "failed": ("bad", "bad", "Failed"),
    "dropped": ("idle", "stop", "Overtaken"),
}


@page
def index(request: PageRequest) -> HttpResponse:
    """Every channel that the actor may see, and how it does."""
    rows = list(alert_channels(request.actor)[: SHOWN + 1])
    states = selectors.states(rows)
    context = {
        "rows": [{"channel": row, "type": TYPES[row.type], "mark": mark_of(row, states.get(row.pk))} for row in rows],
        "more": len(rows) > SHOWN,
        "shown": SHOWN,
    }
    return show(request, "pages/alerts/channels.html", context)


def mark_of(row: AlertChannel, state: ChannelState | None) -> tuple[str, str, str]:
    """How a channel does: kind, shape and word of `components/mark.html`."""
    if not row.enabled:
        return "idle", "stop", "Disabled"
    if state is None:
        return "idle", "unknown", "Not used yet"
    return ("warn", "warn", "Failing") if state.failures else ("good", "good", "Works")


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One channel and its log, newest first, a keyset page at a time (`?before=`); `?state=` narrows."""
    row = only(alert_channels(request.actor), pk)
    chosen, before = request.GET.get("state", ""), request.GET.get("before", "")
    rows = selectors.notifications(row)
    if chosen in Notification.State.values:
        rows = rows.filter(state=chosen)
    if before.isascii() and before.isdecimal() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: PER_PAGE + 1])
    state = selectors.states([row]).get(row.pk)
    context: dict[str, Any] = {
        "channel": row,
        "type": TYPES[row.type],
        "state": state,
        "mark": mark_of(row, state),
        "log": [
            {
                "message": each,
                "event": EVENTS[each.event],
                "mark": STATES[each.state],
                "last": (each.attempts or [None])[-1],
            }
            for each in found[:PER_PAGE]
        ],
        "chosen": chosen if chosen in Notification.State.values else "",
        "states": [(word, STATES[word][2]) for word in Notification.State.values],
        "before": before,
        "next_before": found[PER_PAGE - 1].pk if len(found) > PER_PAGE else None,
    }
    return show(request, "pages/alerts/channel.html", context)


@page
def new(request: PageRequest) -> HttpResponse:
    """A channel of the actor's account, or of one that an operator names."""
    request.actor.may_write("alert-channels")
    return _form(request, None)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """Change a channel; without a new secret the stored one stays."""
    request.actor.may_write("alert-channels")
    return _form(request, only(alert_channels(request.actor).defer(None), pk))


def _form(request: PageRequest, stored: AlertChannel | None) -> HttpResponse:
    own = alert_channels(request.actor).defer(None)
    form = form_for(request, stored, own, partial(ChannelForm, actor=request.actor))
    way = Way.of("web:alert-channels", "Alert channels", "web:alert-channel")
    return edit_object(request, form, way, copy_of("alert-channel", stored))


@post_page
def send_test(request: PageRequest, pk: int) -> HttpResponse:
    """Send a message that says it is a test."""
    try:
        services.send_test(actor=request.actor, channel_id=pk)
    except Conflict as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, "The test is being sent. The response appears in the log below.")
    return redirect("web:alert-channel", pk)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a channel with its log, once its name was typed."""
    request.actor.may_write("alert-channels")
    row = only(alert_channels(request.actor), pk)
    gone = deleted_by_name(request, "AlertChannel", row, f"Channel {row.name} is deleted.")
    return redirect("web:alert-channels") if gone else redirect("web:alert-channel", pk)
