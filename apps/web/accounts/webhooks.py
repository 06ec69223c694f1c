"""Where an account is told what, the log of every endpoint, and sending something again."""

from __future__ import annotations

from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from apps.core.clock import now
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.object_forms import form_for
from apps.web.kit.pages import PageRequest, page, post_page, show, show_once
from apps.web.kit.presets import Preset, fill_in
from apps.web.kit.saving import confirmed, telling, version_sent, version_shown
from apps.web.kit.shape_fields import ask_for_owner
from apps.web.kit.worst_first import first_of, newest_page
from apps.webhooks import selectors, services
from apps.webhooks.events import ALL, CATALOGUE
from apps.webhooks.models import Delivery, Webhook

PER_PAGE = 25
ONCE = "pages/webhooks/secret.html"
SHOWN = 500
PLATFORM_NOUNS = (
    *(
        "account",
        "address_pool",
        "certificate_authority",
        "cloud_account",
        "fleet",
        "grant",
        "load_balancer",
        "node",
        "region",
        "rollout",
    ),
    *("stack", "static_ip", "zone"),
)
STATES = {
    "waiting": ("busy", "behind", "Waiting"),
    "delivered": ("good", "check", "Delivered"),
    "failed": ("bad", "bad", "Failed"),
}


# What programs are told most, by the events; customers are not told of what is the platform's.
_PRESETS = {
    "changes": (
        "Changes",
        "What carries traffic was changed, and went live.",
        ("route", "pool", "server", "limit", "certificate", "hostname", "load_balancer", "rollout", "canary"),
    ),
    "trouble": (
        "Alerts and incidents",
        "Alerts are acknowledged or silenced, incidents reported.",
        ("alert", "silence", "incident"),
    ),
    "access": (
        "People and access",
        "Sign-ins, members, invitations, tokens and webhooks.",
        ("person", "membership", "invitation", "token", "webhook", "account", "grant"),
    ),
    "capacity": (
        "Schedules and capacity",
        "What runs by itself, and what was measured.",
        ("schedule", "schedule_run", "trigger", "capacity_test", "run", "comparison", "limit"),
    ),
}


def presets_of(form: WebhookForm) -> dict[str, Preset]:
    """The presets, as far as the form offers their events."""
    known = {value for value, _ in form.choices}
    found = {
        name: Preset(label, about, _events([f"{noun}.*" for noun in nouns if f"{noun}.*" in known]))
        for name, (label, about, nouns) in _PRESETS.items()
    }
    return found | {
        "everything": Preset("Everything", "Each event of the account, e.g. for an archive.", _events([ALL]))
    }


def _events(types: list[str]) -> dict[str, Any]:
    return {"/spec/event_types": types, "single": ""}


class WebhookForm(forms.Form):
    """Where to send, and what; the services check both."""

    use_required_attribute = False

    def __init__(self, *args: Any, stored: Webhook | None, is_operator: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        nouns = [noun for noun in CATALOGUE if is_operator or noun not in PLATFORM_NOUNS]
        self.choices = [(ALL, "Everything")] + [(f"{noun}.*", _plural(noun)) for noun in nouns]
        plain = {"autocomplete": "off", "spellcheck": "false"}
        if stored is None:
            self.fields["/name"] = forms.CharField(
                label="Name", help_text="Lowercase letters, digits and hyphens.", widget=forms.TextInput(plain)
            )
            if is_operator:
                ask_for_owner(self, "Default: the operator's account, which receives events of every account.")
        self.fields["/spec/url"] = forms.CharField(
            label="URL",
            widget=forms.TextInput(plain | {"class": "mono", "placeholder": "https://hooks.example.com/spillway"}),
            help_text="Receives a JSON POST for each event. Private addresses are rejected.",
        )
        self.fields["/spec/event_types"] = forms.MultipleChoiceField(
            label="Events", choices=self.choices, required=False, widget=forms.CheckboxSelectMultiple
        )
        self.fields["single"] = forms.CharField(
            label="Specific events",
            required=False,
            widget=forms.TextInput(plain | {"class": "mono", "placeholder": "route.deleted limit.changed"}),
            help_text="Event names separated by spaces, to receive fewer than all events of a kind.",
        )
        if stored is not None:
            self.fields["/spec/enabled"] = forms.BooleanField(label="Enabled", required=False)

    @property
    def ticked(self) -> list[str]:
        """The events whose boxes are ticked."""
        return self["/spec/event_types"].value() or []

    @property
    def says_events(self) -> bool:
        """Whether single events are named, or one is wrong."""
        return any(self[name].errors for name in self.fields if "event" in name) or bool(self["single"].value())

    @property
    def spec(self) -> dict[str, Any]:
        """What the service takes."""
        data = self.cleaned_data
        types = list(dict.fromkeys([*data["/spec/event_types"], *data["single"].split()]))
        spec = {"url": data["/spec/url"].strip(), "event_types": types}
        return spec | ({"enabled": data["/spec/enabled"]} if "/spec/enabled" in data else {})


def _plural(noun: str) -> str:
    words = noun.replace("_", " ").capitalize()
    several = f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"
    return {"person": "People", "static_ip": "Static IPs"}.get(noun, several)


def _stored(row: Webhook, is_operator: bool) -> dict[str, Any]:
    """What the form shows of an endpoint that is there."""
    known = {value for value, _ in WebhookForm(stored=row, is_operator=is_operator).choices}
    types = list(row.event_types)
    return {
        "/spec/url": row.url,
        "/spec/event_types": [each for each in types if each in known],
        "single": " ".join(each for each in types if each not in known),
        "/spec/enabled": row.enabled,
    }


@page
def index(request: PageRequest) -> HttpResponse:
    """Every endpoint that the actor may see."""
    rows, context = first_of(selectors.webhooks(request.actor), SHOWN)
    context |= {
        "rows": [(row, state_of(row)) for row in rows],
        "off": [row for row in rows if row.disabled_reason and not row.enabled],
    }
    return show(request, "pages/webhooks/list.html", context)


def state_of(row: Webhook) -> tuple[str, str, str]:
    """How an endpoint does: kind, shape and word of `components/mark.html`."""
    if not row.enabled:
        return ("bad", "stop", "Disabled after failures") if row.disabled_reason else ("idle", "stop", "Disabled")
    return ("warn", "warn", "Failing") if row.failing_since else ("good", "good", "Active")


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One endpoint and its log, newest first, a keyset page at a time (`?before=`); `?state=` narrows."""
    row = selectors.webhook(request.actor, pk)
    state, rows = request.GET.get("state", ""), selectors.deliveries(row)
    if state in Delivery.State.values:
        rows = rows.filter(state=state)
    found, context = newest_page(rows, request.GET.get("before", ""), PER_PAGE)
    context |= {
        "row": row,
        "state": state_of(row),
        "two_secrets": row.previous_until is not None and row.previous_until > now(),
        "log": [_logged(each) for each in found],
        "chosen": state if state in Delivery.State.values else "",
        "states": [(word, STATES[word][2]) for word in Delivery.State.values],
    }
    return show(request, "pages/webhooks/detail.html", context)


def _logged(delivery: Delivery) -> dict[str, Any]:
    attempts = list(delivery.attempts.all())
    return {
        "delivery": delivery,
        "mark": STATES[delivery.state],
        "attempts": attempts,
        "last": attempts[-1] if attempts else None,
    }


@page
def new(request: PageRequest) -> HttpResponse:
    """A form; then the secret, which is shown this once."""
    request.actor.may_write(services.NOUN)
    form = form_for(request, None, selectors.webhooks(request.actor), partial(_form_of, request))
    presets = presets_of(form)
    chosen = fill_in(request, form, presets)
    if form.is_bound and form.is_valid():
        account = form.cleaned_data.get("/account") or None
        with refusals_in(form, conflicts_at="/name"):
            row, secret = services.make_webhook(
                actor=request.actor, name=form.cleaned_data["/name"], account=account, spec=form.spec
            )
            return show_once(request, ONCE, {"row": row, "secret": secret})
    context = {"form": form, "row": None, "presets": presets, "chosen": chosen}
    return show(request, "pages/webhooks/form.html", context, status=422 if form.is_bound else 200)


def _form_of(request: PageRequest, data: QueryDict | None, stored: Webhook | None) -> WebhookForm:
    is_operator = request.actor.is_operator
    initial = _stored(stored, is_operator) if stored else {"/spec/event_types": ["route.*", "pool.*"]}
    return WebhookForm(data, stored=stored, is_operator=is_operator, initial=initial)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """Change where and what; the version that was shown must still be the present one."""
    request.actor.may_write(services.NOUN)
    row = selectors.webhook(request.actor, pk)
    form = form_for(request, row, selectors.webhooks(request.actor), partial(_form_of, request))
    presets = presets_of(form)
    chosen = fill_in(request, form, presets)
    if form.is_bound and form.is_valid():
        with refusals_in(form):
            services.change_webhook(
                actor=request.actor, webhook_id=pk, spec=form.spec, expected_version=version_sent(request)
            )
            messages.success(request, f"Webhook {row.name} is saved.")
            return redirect("web:webhook", pk=pk)
    context = {"form": form, "row": row, "version": version_shown(request, row), "presets": presets, "chosen": chosen}
    return show(request, "pages/webhooks/form.html", context, status=422 if form.is_bound else 200)


@post_page
def rotate(request: PageRequest, pk: int) -> HttpResponse:
    """A new secret, shown this once."""
    secret = services.rotate_secret(actor=request.actor, webhook_id=pk)
    return show_once(request, ONCE, {"row": selectors.webhook(request.actor, pk), "secret": secret})


@post_page
def send_test(request: PageRequest, pk: int) -> HttpResponse:
    """Send an event that says it is a test."""
    with telling(request, "The test is being sent. The response appears in the log below."):
        services.send_test(actor=request.actor, webhook_id=pk)
    return redirect("web:webhook", pk=pk)


@post_page
def redeliver(request: PageRequest, pk: int, delivery: int) -> HttpResponse:
    """Send one event again."""
    with telling(request, "Sending again with the same ID."):
        services.redeliver(actor=request.actor, webhook_id=pk, delivery_id=delivery)
    return redirect("web:webhook", pk=pk)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Take an endpoint away, once its name was typed."""
    row = selectors.webhook(request.actor, pk)
    if not confirmed(request, row.name):
        return redirect("web:webhook", pk=pk)
    services.delete_webhook(actor=request.actor, webhook_id=pk)
    messages.success(request, f"Webhook {row.name} is deleted.")
    return redirect("web:webhooks")
