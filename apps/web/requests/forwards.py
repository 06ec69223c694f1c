"""Log systems that an account's request lines go on to: how each does, its form, a test, its end."""

from __future__ import annotations

from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from apps.core.errors import Conflict
from apps.logs.forward import services
from apps.logs.models import LogForward
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.object_forms import form_for
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import confirmed, version_sent, version_shown
from apps.web.kit.shape_fields import ask_for_owner

SHOWN = 100


class ForwardForm(forms.Form):
    """Where lines go, and which; the service checks all of it."""

    use_required_attribute = False

    def __init__(self, *args: Any, stored: LogForward | None, is_operator: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plain = {"autocomplete": "off", "spellcheck": "false"}
        mono = plain | {"class": "mono"}
        if stored is None:
            self.fields["/name"] = forms.CharField(
                label="Name", help_text="Lowercase letters, digits and hyphens.", widget=forms.TextInput(plain)
            )
            if is_operator:
                ask_for_owner(self, "Default: the operator's account, which forwards lines of every account.")
        self.fields["/spec/url"] = forms.CharField(
            label="URL",
            widget=forms.TextInput(mono | {"placeholder": "syslog+tls://logs.example.com:6514"}),
            help_text="syslog+tls://host:port for syslog over TLS; https://…/v1/logs or /v1/traces for OTLP.",
        )
        self.fields["/spec/sends"] = forms.ChoiceField(
            label="Send",
            required=False,
            choices=LogForward.Sends.choices,
            help_text="Spans are for OTLP, of requests that are sampled in a trace.",
        )
        self.fields["/spec/filter"] = forms.CharField(
            label="Filter",
            required=False,
            widget=forms.TextInput(mono | {"placeholder": "status>=500 route:shop"}),
            help_text="Words as on the page Requests; empty forwards every line.",
        )
        self.fields["/spec/ca"] = forms.CharField(
            label="Certificates",
            required=False,
            strip=False,
            widget=forms.Textarea(mono | {"rows": 4, "placeholder": "-----BEGIN CERTIFICATE-----"}),
            help_text="In PEM form, trusted instead of the well-known authorities.",
        )
        self.fields["/spec/header_name"] = forms.CharField(
            label="Header",
            required=False,
            widget=forms.TextInput(mono | {"placeholder": "Authorization"}),
            help_text="For OTLP, what proves who sends.",
        )
        self.fields["/spec/header_value"] = forms.CharField(
            label="Value of the header",
            required=False,
            widget=forms.PasswordInput(mono | {"autocomplete": "new-password"}),
            help_text="Sealed, never shown again. Empty keeps the stored one." if stored else "Sealed, never shown.",
        )
        if stored is not None:
            self.fields["/spec/enabled"] = forms.BooleanField(
                label="Enabled", required=False, help_text="Disabled, what waits is dropped."
            )

    @property
    def spec(self) -> dict[str, Any]:
        """What the service takes; a value that is left empty stays as it is."""
        data = self.cleaned_data
        spec = {name.removeprefix("/spec/"): value for name, value in data.items() if name.startswith("/spec/")}
        return {name: value for name, value in spec.items() if value or name not in ("sends", "header_value")}


@page
def index(request: PageRequest) -> HttpResponse:
    """Every log forward that the actor may see, and how it does."""
    rows = list(services.forwards(request.actor)[: SHOWN + 1])
    context = {
        "rows": [(row, state_of(row), services.waiting(row)) for row in rows[:SHOWN]],
        "more": len(rows) > SHOWN,
        "shown": SHOWN,
    }
    return show(request, "pages/requests/forwards.html", context)


def state_of(row: LogForward) -> tuple[str, str, str]:
    """How a log forward does: kind, shape and word of `components/mark.html`."""
    if not row.enabled:
        return "idle", "stop", "Disabled"
    if row.failing_since:
        return "warn", "warn", "Failing"
    return ("good", "good", "Active") if row.sent_at else ("idle", "unknown", "Nothing sent yet")


@page
def new(request: PageRequest) -> HttpResponse:
    """A form."""
    request.actor.may_write(services.NOUN)
    form = form_for(request, None, services.forwards(request.actor), partial(_form_of, request))
    if form.is_bound and form.is_valid():
        account = form.cleaned_data.get("/account") or None
        with refusals_in(form, conflicts_at="/name"):
            row = services.make_forward(
                actor=request.actor, name=form.cleaned_data["/name"], account=account, spec=form.spec
            )
            messages.success(request, f"Log forward {row.name} is saved. Send a test to see whether lines arrive.")
            return redirect("web:log-forwards")
    context = {"form": form, "row": None}
    return show(request, "pages/requests/forward_form.html", context, status=422 if form.is_bound else 200)


def _form_of(request: PageRequest, data: QueryDict | None, stored: LogForward | None) -> ForwardForm:
    document = services.document(stored) if stored else {}
    said = {f"/spec/{name}": value for name, value in document.items()}
    return ForwardForm(data, stored=stored, is_operator=request.actor.is_operator, initial=said)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """Change where and what; the version that was shown must still be the present one."""
    request.actor.may_write(services.NOUN)
    row = services.forward(request.actor, pk)
    form = form_for(request, row, services.forwards(request.actor), partial(_form_of, request))
    if form.is_bound and form.is_valid():
        with refusals_in(form):
            services.change_forward(actor=request.actor, pk=pk, spec=form.spec, expected_version=version_sent(request))
            messages.success(request, f"Log forward {row.name} is saved.")
            return redirect("web:log-forwards")
    context = {"form": form, "row": row, "version": version_shown(request, row)}
    return show(request, "pages/requests/forward_form.html", context, status=422 if form.is_bound else 200)


@post_page
def send_test(request: PageRequest, pk: int) -> HttpResponse:
    """Send one line that says it is a test, and say what came of it."""
    try:
        outcome = services.send_test(actor=request.actor, pk=pk)
    except Conflict as error:
        messages.error(request, error.detail)
    else:
        if outcome.sent:
            messages.success(request, "The receiver took the test line.")
        else:
            messages.error(request, f"The test line did not arrive. {outcome.error}")
    return redirect("web:log-forwards")


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Take a log forward away, once its name was typed."""
    row = services.forward(request.actor, pk)
    if confirmed(request, row.name):
        services.delete_forward(actor=request.actor, pk=pk)
        messages.success(request, f"Log forward {row.name} is deleted.")
    return redirect("web:log-forwards")
