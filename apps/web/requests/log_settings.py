"""How long an account's request lines are kept, how many there are, what leaves as an archive, and their deletion."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib import messages
from django.http import FileResponse, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from apps.accounts.models import Account, Membership
from apps.accounts.selectors import accounts
from apps.core.errors import Invalid, NotFound
from apps.logs import selectors, services
from apps.logs.models import LogSettings
from apps.logs.searching import NotAnswered
from apps.members.reading import account_named
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import confirmed, version_sent
from apps.web.requests.asked import LENGTHS, Asked, instant
from apps.web.requests.views import refused

LEAST, MOST = services.RETENTION_DAYS


class LogSettingsForm(forms.Form):
    """What an account wants of its log; the service checks it."""

    use_required_attribute = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["/spec/retention_days"] = forms.IntegerField(
            label="Days to keep lines",
            help_text=f"From {LEAST} to {MOST}. Older lines are deleted within ten minutes.",
            widget=forms.NumberInput({"min": LEAST, "max": MOST}),
        )
        self.fields["/spec/mask_addresses"] = forms.BooleanField(
            label="Mask client addresses",
            required=False,
            help_text="Store only the network of a client, /24 of IPv4 and /48 of IPv6. Stored lines stay as they are.",
        )
        self.fields["/spec/mask_values_of"] = forms.CharField(
            label="Mask values of",
            required=False,
            help_text="Names of parameters and headers, separated by commas. token also means access_token and "
            "X-Auth-Token. Their values are stored and forwarded as ***. Stored lines stay as they are.",
            widget=forms.Textarea({"rows": 3, "spellcheck": "false", "autocapitalize": "off"}),
        )


@page
def index(request: PageRequest) -> HttpResponse:
    """The settings as a form, usage, archive and deletion of one account."""
    owner = _owner(request)
    row = selectors.settings_of(owner)
    if request.method == "POST":
        request.actor.may_write(services.NOUN)
    spec = services.document(row)
    spec["mask_values_of"] = ", ".join(spec["mask_values_of"])
    usual = {f"/spec/{name}": value for name, value in spec.items()}
    form = LogSettingsForm(request.POST if request.method == "POST" else None, initial=usual)
    if form.is_bound and form.is_valid() and _saved(request, form, owner):
        messages.success(request, "The settings are saved.")
        return redirect(address_of(request, owner))
    context = _shown(request, owner, row, form)
    return show(request, "pages/requests/settings.html", context, status=422 if form.is_bound else 200)


def _saved(request: PageRequest, form: LogSettingsForm, owner: Account) -> bool:
    spec = {name: form.cleaned_data[f"/spec/{name}"] for name in services.FIELDS}
    spec["mask_values_of"] = re.findall(r"[^,\s]+", spec["mask_values_of"])
    with refusals_in(form):
        services.change_settings(
            actor=request.actor, account=owner.name, spec=spec, expected_version=version_sent(request)
        )
        return True
    return False


def _shown(request: PageRequest, owner: Account, row: LogSettings, form: LogSettingsForm) -> dict[str, Any]:
    actor = request.actor
    context: dict[str, Any] = {
        "owner": owner,
        "form": form,
        "version": request.POST.get("version", row.version),
        "accounts": accounts(actor) if actor.is_operator else (),
        "may_delete": actor.role == Membership.Role.ADMIN or (actor.is_operator and owner != actor.account),
        "lengths": [(word, title) for word, (title, _) in LENGTHS.items()],
    }
    try:
        context["usage"] = selectors.usage(owner)
    except NotAnswered as error:
        context["not_answered"] = error.detail
    return context


@page
def archive(request: PageRequest, kind: selectors.ExportFormat) -> HttpResponse:
    """An account's lines of a window as one file, oldest first."""
    try:
        opened = selectors.archive(request.actor, Asked.read(request.GET).question(request.actor), kind)
    except Invalid as error:
        return refused(" ".join(each.detail for each in error.field_errors), 422)
    except NotAnswered as error:
        return refused(error.detail, 503)
    name = f"spillway-requests.{kind}"
    # Pages answer both, Django's types say HttpResponseBase.
    return FileResponse(  # type: ignore[return-value]
        opened, as_attachment=True, filename=name, content_type=selectors.MEDIA_TYPES[kind]
    )


@post_page
def delete(request: PageRequest) -> HttpResponse:
    """Delete lines before a time, once the account's name was typed."""
    owner = _owner(request)
    services.must_delete(request.actor, owner)
    back = redirect(address_of(request, owner))
    if not confirmed(request, owner.name):
        return back
    try:
        before = instant("before", request.POST.get("before", ""))
        gone = services.delete_lines(actor=request.actor, account=owner.name, before=before)
    except Invalid as error:
        messages.error(request, " ".join(each.detail for each in error.field_errors))
    except NotAnswered as error:
        messages.error(request, f"{error.detail} Some lines may be deleted already.")
    else:
        messages.success(request, f"{gone:,} lines are deleted." if gone else "No line was that old.")
    return back


def _owner(request: PageRequest) -> Account:
    """The account that the address or the form names, else the actor's own. Raises NotFound."""
    name = request.POST.get("account", "") or request.GET.get("account", "")
    try:
        return account_named(request.actor, name or None)
    except Invalid as error:
        raise NotFound("There is no such account, or you may not see it.") from error


def address_of(request: PageRequest, owner: Account) -> str:
    """The page of an account's settings."""
    url = reverse("web:requests-settings")
    return url if owner == request.actor.account else f"{url}?{urlencode({'account': owner.name})}"
