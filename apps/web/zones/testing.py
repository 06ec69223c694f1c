"""The connection to the server of a zone, tested from its page and from its form before anything is saved."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.accounts.actors import Actor
from apps.core.errors import Conflict, Invalid
from apps.definitions.models import Zone
from apps.definitions.selectors import only
from apps.definitions.selectors import zones as visible_zones
from apps.dns.trying import try_server, typed_zone
from apps.fleet.models import Stack
from apps.fleet.selectors import stacks
from apps.web.clouds.cloud_accounts import try_account
from apps.web.kit.field_errors import attach_errors
from apps.web.kit.pages import PageRequest, operators_only, post_page
from apps.web.kit.shape_forms import ShapeForm


@post_page
def test_connection(request: PageRequest, pk: int) -> HttpResponse:
    """Ask the server of a stored zone, or the cloud of its stack, and say on its page what it said."""
    operators_only(request.actor, "tests of zones")
    zone = only(visible_zones(request.actor), pk)
    try:
        messages.success(request, _said(request.actor, zone, zone.stack))
    except Conflict as error:
        messages.error(request, error.detail)
    return redirect("web:zone", pk)


def tested_form(request: PageRequest, form: ShapeForm) -> dict[str, Any]:
    """What the server says that is typed in the form, which is not saved; errors stand beside its fields."""
    form.is_valid()
    try:
        document = form.spec()
        zone = typed_zone(document)
        stack = stacks(request.actor).filter(name=document.get("stack") or "").first()
        return {"kind": "good", "title": "The connection works.", "text": _said(request.actor, zone, stack)}
    except Invalid as error:
        attach_errors(form, error)
        return {}
    except Conflict as error:
        return {"kind": "bad", "title": "The connection does not work.", "text": error.detail}


def _said(actor: Actor, zone: Zone, stack: Stack | None) -> str:
    if zone.driver == Zone.Driver.ROUTE53 and stack is not None:
        return try_account(actor, stack.cloud_account, stack.cloud_region)
    return try_server(actor=actor, zone=zone)
