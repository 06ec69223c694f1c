"""New and changed routes, checked while somebody types, and edit conflicts."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from apps.accounts.models import Account
from apps.accounts.selectors import accounts
from apps.core.errors import FieldError, Invalid, Stale
from apps.definitions.models import Route
from apps.definitions.selectors import only, route_conflicts
from apps.definitions.selectors import routes as visible_routes
from apps.web.kit.object_forms import copied
from apps.web.kit.pages import PageRequest, onward, page, post_page, show
from apps.web.kit.saving import Typed, save, tell, two_edits
from apps.web.routes.form import RouteEntry
from apps.web.routes.rendering import rendered_route

FORM = "pages/routes/form.html"
UNNAMED = "unnamed"


@page
def new(request: PageRequest) -> HttpResponse:
    """A new route; query parameters may fill in hostname, path, pool, load balancer and account, or `copy` a route."""
    return _form(request, None)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """The same page for a route that is there."""
    return _form(request, only(visible_routes(request.actor), pk))


def _form(request: PageRequest, row: Route | None) -> HttpResponse:
    request.actor.may_write()
    source = copied(request, visible_routes(request.actor)) if row is None else None
    if request.method != "POST":
        entry = RouteEntry(request.actor, row, None, request.GET.dict(), source=source)
        return show(request, FORM, _page(entry) | _blank_check(entry))
    entry = RouteEntry(request.actor, row, request.POST, {}, source=source)
    if request.GET.get("partial"):
        return show(request, FORM, _page(entry))
    if entry.is_valid():
        typed = _typed(entry)
        try:
            return _saved(request, typed)
        except Stale:
            return _two_edits(request, entry, typed)
        except Invalid as error:
            # Before the errors are noted: a field with an error is not part of the spec any more.
            context = _checked(request, entry)
            entry.add_errors(error.field_errors)
    else:
        context = _checked(request, entry)
        entry.add_errors(context.get("field_errors", ()))
    return show(request, FORM, context | _page(entry), status=422)


def _typed(entry: RouteEntry) -> Typed:
    got = entry.head.cleaned_data
    return Typed(
        kind="Route",
        row=entry.row,
        name=got.get("name", ""),
        account=got.get("account"),
        spec=entry.spec(),
        version=got.get("version") or 0,
        reason=got.get("reason", ""),
    )


def _saved(request: PageRequest, typed: Typed) -> HttpResponse:
    saved: Route = save(request, typed)
    tell(request, typed, saved, f"Route {saved.name} is saved and is being rolled out.")
    return onward(request, "web:route", saved.pk)


def _two_edits(request: PageRequest, entry: RouteEntry, typed: Typed) -> HttpResponse:
    live = only(visible_routes(request.actor), typed.row.pk)

    def again(spec: dict[str, Any]) -> dict[str, Any]:
        both = RouteEntry(request.actor, live, None, {}, spec=spec)
        both.head.initial["reason"] = typed.reason
        return _page(both) | _blank_check(both)

    return two_edits(request, FORM, typed, live=live, began=entry.head.cleaned_data.get("began", ""), again=again)


def _page(entry: RouteEntry) -> dict[str, Any]:
    return {"entry": entry, "form": entry.head, "row": entry.row, "capabilities": entry.capabilities}


@post_page
def check(request: PageRequest) -> HttpResponse:
    """The rail beside the form, for what is typed so far: who else matches, and the rendered result."""
    number = request.POST.get("route", "")
    row = only(visible_routes(request.actor), int(number)) if number.isdecimal() and len(number) < 19 else None
    entry = RouteEntry(request.actor, row, request.POST, {})
    entry.is_valid()
    return show(request, "pages/routes/check.html", _checked(request, entry))


def _blank_check(entry: RouteEntry) -> dict[str, Any]:
    return {"row": entry.row, "untouched": True}


def _checked(request: PageRequest, entry: RouteEntry) -> dict[str, Any]:
    """`conflicts`, and either `rendered` or the `field_errors` of what is typed so far."""
    owner, spec = _owner(request, entry), entry.spec()
    context: dict[str, Any] = {"row": entry.row}
    context["conflicts"] = route_conflicts(
        request.actor, spec, account=owner, exclude_id=entry.row.pk if entry.row else None
    )
    if "account" in entry.head.fields and not entry.head.cleaned_data.get("account"):
        context["field_errors"] = [FieldError("/account", "required", "Choose the account that owns the route.")]
        return context
    name = entry.row.name if entry.row else entry.head.cleaned_data.get("name") or UNNAMED
    try:
        context["rendered"] = rendered_route(request.actor, spec, name, account=owner)
    except Invalid as error:
        context["field_errors"] = error.field_errors
    return context


def _owner(request: PageRequest, entry: RouteEntry) -> Account:
    if entry.row is not None:
        return entry.row.account
    name = entry.head.cleaned_data.get("account")
    return (accounts(request.actor).filter(name=name).first() if name else None) or request.actor.account
