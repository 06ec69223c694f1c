"""Accounts at clouds, and what already stands there and could be adopted."""

from __future__ import annotations

from typing import Any

import yaml
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.accounts.actors import Actor
from apps.adoption import selectors as adoption
from apps.adoption.contract import Verdict
from apps.adoption.import_options import read_order
from apps.core.caching import pause_between_tests
from apps.core.errors import Conflict, FieldError, Invalid
from apps.definitions.selectors import only
from apps.definitions.services import plan_document
from apps.fleet import selectors as topology
from apps.fleet.models import CloudAccount
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show
from apps.web.kit.saving import deleted
from apps.web.kit.shape_fields import account_field

VERDICTS = {
    Verdict.LEFT_OUT: ("refused", "Left out"),
    Verdict.LOSSY: ("degraded", "Differs"),
    Verdict.MAPPED: ("done", "Mapped"),
}
# Where every account of a cloud may ask.
ANYWHERE = {"aws": "us-east-1", "google": "global"}
ORDER = (Verdict.LEFT_OUT, Verdict.LOSSY, Verdict.MAPPED)


class AdoptForm(forms.Form):
    """Where to look, and what the cloud cannot know; fields of the order are named by their pointers."""

    use_required_attribute = False

    def __init__(self, *args: Any, request: PageRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        actor = request.actor
        rows = [(str(row.pk), f"{row.name} ({row.cloud})") for row in topology.cloud_accounts(actor)]
        self.fields["cloud"] = forms.ChoiceField(label="Cloud account", choices=rows)
        self.fields["/region"] = forms.CharField(
            label="The cloud's region", help_text="eu-central-1; global on Google."
        )
        hint = "Search first, then choose one."
        self.fields["found"] = forms.CharField(label="Load balancer", required=False, help_text=hint)
        self.fields["/account"] = account_field("The account that owns the routes and pools.")
        self.fields["/name"] = forms.CharField(label="Name in Spillway", required=False, max_length=63)
        regions = [("", "none"), *((row.name, row.name) for row in topology.regions(actor))]
        self.fields["ours"] = forms.ChoiceField(label="Spillway region", choices=regions, required=False)
        stacks = [("", "none"), *((row.name, row.name) for row in topology.stacks(actor))]
        self.fields["/stack"] = forms.ChoiceField(label="Stack", choices=stacks, required=False)
        self._lines("regions", "More regions and zones", "europe-west3-a=frankfurt, one per line. Zones on Google.")
        self._lines(
            "certificates",
            "Certificates",
            "Cloud ARN or name=your certificate, one per line. Clouds never return private keys.",
        )
        self._lines("addresses", "Addresses", "203.0.113.7=name of your static IP, one per line.")

    def _lines(self, name: str, label: str, hint: str) -> None:
        widget = forms.Textarea(attrs={"class": "mono", "rows": 3, "spellcheck": "false"})
        self.fields[f"/{name}"] = forms.CharField(label=label, required=False, widget=widget, help_text=hint)

    def order(self) -> dict[str, Any]:
        """What was typed, as programs write it. Raises Invalid for a line that is no pair."""
        found = self.cleaned_data
        order: dict[str, Any] = {word: found[f"/{word}"] for word in ("region", "name", "account", "stack")}
        order |= {word: pairs(found[f"/{word}"], f"/{word}") for word in ("regions", "certificates", "addresses")}
        if found["ours"]:
            order["regions"] = {found["/region"]: found["ours"]} | order["regions"]
        return {"id": found["found"]} | {word: value for word, value in order.items() if value}


def pairs(text: str, pointer: str) -> dict[str, str]:
    """Lines of `theirs=ours`; theirs may have signs of equality, ours has none. Raises Invalid."""
    found: dict[str, str] = {}
    field_errors = []
    for line in filter(None, map(str.strip, text.splitlines())):
        theirs, _, ours = (part.strip() for part in line.rpartition("="))
        if not theirs or not ours:
            field_errors.append(
                FieldError(pointer, "pair", f"Write cloud=spillway, one pair per line. Not a pair: {line[:80]}")
            )
        elif theirs in found:
            field_errors.append(
                FieldError(pointer, "twice", f"Name each cloud object only once. Repeated: {theirs[:80]}")
            )
        found[theirs] = ours
    if field_errors:
        raise Invalid(field_errors)
    return found


@page
def index(request: PageRequest) -> HttpResponse:
    """Every account at a cloud with the stacks in it."""
    operators_only(request.actor, "cloud accounts")
    rows = topology.cloud_accounts(request.actor).prefetch_related("stacks")
    return show(request, "pages/clouds/accounts.html", {"rows": rows})


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Forget a cloud account that has no stack."""
    operators_only(request.actor, "cloud accounts")
    row = only(topology.cloud_accounts(request.actor), pk)
    deleted(request, "CloudAccount", row, f"Cloud account {row.name} is deleted.")
    return redirect("web:cloud-accounts")


@post_page
def test_connection(request: PageRequest, pk: int) -> HttpResponse:
    """Ask the cloud once, where the account has a stack or else where every account may ask, and say what it said."""
    operators_only(request.actor, "cloud accounts")
    row = only(topology.cloud_accounts(request.actor).prefetch_related("stacks"), pk)
    region = next((stack.cloud_region for stack in row.stacks.all()), ANYWHERE[row.cloud])
    try:
        messages.success(request, try_account(request.actor, row, region))
    except (Conflict, Invalid) as error:
        messages.error(request, error.detail)
    return redirect("web:cloud-accounts")


def try_account(actor: Actor, row: CloudAccount, region: str) -> str:
    """A sentence about what the cloud says of the account. Raises Forbidden, Conflict where it does not work."""
    actor.may_write()
    pause_between_tests("cloud", actor.account.pk, actor.name)
    try:
        found = adoption.load_balancers_of(actor=actor, cloud_account_id=row.pk, region=region)
    except (Conflict, Invalid) as error:
        raise Conflict(f"Cloud account {row.name} does not work in {region}. {error.detail}") from error
    many = "1 load balancer" if len(found) == 1 else f"{len(found)} load balancers"
    return f"Cloud account {row.name} works. It has {many} in {region}."


@page
def adopt(request: PageRequest) -> HttpResponse:
    """Look into a cloud; one load balancer as definitions, with a line for all that was found. Nothing is written."""
    operators_only(request.actor, "adopt")
    form = AdoptForm(request.GET if request.GET.get("cloud") else None, request=request)
    context: dict[str, Any] = {"form": form}
    if form.is_bound and form.is_valid():
        with refusals_in(form):
            context |= _found(request, form)
    return show(request, "pages/clouds/adopt.html", context, status=422 if form.errors else 200)


def _found(request: PageRequest, form: AdoptForm) -> dict[str, Any]:
    """The list, or one of it as definitions."""
    actor, cloud, region = request.actor, int(form.cleaned_data["cloud"]), form.cleaned_data["/region"]
    chosen = form.cleaned_data["found"]
    if not chosen:
        found = adoption.load_balancers_of(actor=actor, cloud_account_id=cloud, region=region)
        return {"found": found, "looked": True}
    order = read_order(form.order(), account=actor.account.name)
    made = adoption.adopt(actor=actor, cloud_account_id=cloud, order=order)
    lines = sorted(made.report, key=lambda line: ORDER.index(line.verdict))
    document = adoption.apply_document(made)
    context: dict[str, Any] = {
        "lines": [(line, VERDICTS[line.verdict]) for line in lines],
        "text": yaml.safe_dump(document, sort_keys=False, allow_unicode=True),
    }
    try:
        context["plan"] = plan_document(actor=request.actor, objects=document["objects"])
    except Invalid as error:
        context["field_errors"] = error.field_errors
    return context
