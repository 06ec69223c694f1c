"""Grants: which account may use which hostnames and shared pools, and what it does with them."""

from __future__ import annotations

import functools
import operator
from typing import Any

from django import forms
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.accounts.models import Grant
from apps.accounts.rights import claims_under
from apps.audit.selectors import entries_of
from apps.core.clock import now
from apps.core.errors import there
from apps.definitions import selectors
from apps.definitions.shapes.base.words import instant_text
from apps.definitions.sharing import tagged
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.object_forms import copied
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show
from apps.web.kit.saving import Typed, deleted_by_name, save, tell
from apps.web.kit.shape_fields import account_field

PER_PAGE = 100
SHOWN = 50
STOPS = (
    "{} route{} of {} may lose a shared pool. A route that has no other pool responds with 500 from then on. Share the "
    "pool again to bring it back."
)
MONO = {"class": "mono", "autocomplete": "off", "spellcheck": "false"}


class GrantForm(forms.Form):
    """A grant as people type it; whether it makes sense is said by the document."""

    use_required_attribute = False

    def __init__(self, *args: Any, stored: Grant | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["/spec/account"] = account_field("The customer who may use what is shared.", required=True)
        if stored is None:
            hint = "Lowercase letters, digits and hyphens. Can't be changed later."
            self.fields["/name"] = forms.CharField(label="Name", help_text=hint)
        self.fields["/spec/hostname"] = forms.CharField(
            label="Hostname",
            required=False,
            help_text="Includes routes, certificates and load tests. Use *.shop.example.com for all subdomains.",
            widget=forms.TextInput(attrs=MONO | {"placeholder": "*.shop.example.com"}),
        )
        self.fields["/spec/tag"] = forms.CharField(
            label="Tag",
            required=False,
            help_text="All operator pools with this tag are shared: the customer can see them and route to them.",
            widget=forms.TextInput(attrs=MONO | {"placeholder": "customer=acme"}),
        )
        self.fields["/spec/may_load_test"] = forms.BooleanField(
            label="Allow load tests of the hostnames", required=False, initial=True
        )
        self.fields["/spec/expires_at"] = forms.CharField(
            label="Expires (UTC)",
            required=False,
            help_text="Leave empty for no end. After this time, new objects cannot use "
            "the grant. Existing objects keep working.",
            widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}),
        )
        self.fields["reason"] = forms.CharField(
            label="Reason", required=False, max_length=400, help_text="Recorded in the audit log."
        )
        self.fields["version"] = forms.IntegerField(required=False, widget=forms.HiddenInput)

    @property
    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields by heading."""
        names = {
            "Account": ("/spec/account", "/name"),
            "A hostname": ("/spec/hostname", "/spec/may_load_test"),
            "Or pools by tag": ("/spec/tag",),
            "Duration and reason": ("/spec/expires_at", "reason"),
        }
        return [(title, [self[name] for name in each if name in self.fields]) for title, each in names.items()]

    def spec(self) -> dict[str, Any]:
        """The document of what was typed; browsers leave the seconds out where they are 0."""
        data = self.cleaned_data
        spec = {name: data[f"/spec/{name}"] or None for name in ("account", "hostname", "tag")}
        ends = data["/spec/expires_at"].strip()
        if ends:
            ends = f"{ends}:00Z" if len(ends) == len("2027-01-31T00:00") else f"{ends}Z"
        return spec | {"may_load_test": data["/spec/may_load_test"], "expires_at": ends or None}


@page
def index(request: PageRequest) -> HttpResponse:
    """Grants by name, a keyset page at a time; `?q=` looks into name, account, hostname and tag."""
    operators_only(request.actor, "grants")
    rows = selectors.grants(request.actor)
    query, after = (request.GET.get(name, "").strip()[:253] for name in ("q", "after"))
    if query and query.isprintable():
        fields = ("name", "account__name", "hostname", "tag")
        rows = rows.filter(functools.reduce(operator.or_, (Q((f"{field}__icontains", query)) for field in fields)))
    if after and after.isprintable():
        rows = rows.filter(name__gt=after)
    found = list(rows[: PER_PAGE + 1])
    context = {
        "rows": [(row, *state_of(row)) for row in found[:PER_PAGE]],
        "query": query,
        "after": after,
        "next_after": found[PER_PAGE - 1].name if len(found) > PER_PAGE else None,
    }
    return show(request, "pages/grants/list.html", context)


def state_of(grant: Grant) -> tuple[str, str]:
    """A state for `components/status.html` and its word."""
    ended = grant.expires_at is not None and grant.expires_at <= now()
    return ("superseded", "Expired") if ended else ("done", "In force")


@page
def detail(request: PageRequest, name: str) -> HttpResponse:
    """One grant, and what its account does with it: names that it verifies, pools it shares, routes that use it."""
    row = _one(request, name)
    state, word = state_of(row)
    context: dict[str, Any] = {"row": row, "state": state, "word": word, "ended": state == "superseded"}
    if row.hostname:
        context["names"] = list(claims_under(row.account, row.hostname).filter(released_at=None)[: SHOWN + 1])
        users = Q(hostname__in=claims_under(row.account, row.hostname))
    else:
        context["pools"] = list(tagged(row.tag).select_related("account").order_by("name")[: SHOWN + 1])
        users = Q(pools__pool__in=tagged(row.tag).values("pk"))
    routes = selectors.routes(request.actor).filter(users, account=row.account).distinct()
    shown = context["routes"] = list(routes[: SHOWN + 1])
    used_by = (routes.count() if len(shown) > SHOWN else len(shown)) if row.tag else 0
    context |= {"used_by": used_by, "stops": STOPS.format(used_by, "" if used_by == 1 else "s", row.account.title)}
    context["entries"] = entries_of(request.actor, "Grant", row.pk, limit=8)
    return show(request, "pages/grants/detail.html", context)


@page
def new(request: PageRequest) -> HttpResponse:
    """Make a grant; `?account=` chooses the account."""
    operators_only(request.actor, "grants")
    source = copied(request, selectors.grants(request.actor))
    said = _said_of(source) if source else {"/spec/account": request.GET.get("account", "")[:63]}
    return _form(request, None, said)


@page
def edit(request: PageRequest, name: str) -> HttpResponse:
    """Change a grant; an older version than the stored one is refused."""
    row = _one(request, name)
    return _form(request, row, _said_of(row) | {"version": row.version})


def _said_of(row: Grant) -> dict[str, Any]:
    stored = {"account": row.account.name, "hostname": row.hostname, "tag": row.tag, "may_load_test": row.may_load_test}
    initial: dict[str, Any] = {f"/spec/{field}": value for field, value in stored.items()}
    return initial | {"/spec/expires_at": (instant_text(row.expires_at) or "").rstrip("Z")}


def _form(request: PageRequest, stored: Grant | None, initial: dict[str, Any]) -> HttpResponse:
    request.actor.must_operate("grants")
    data = request.POST if request.method == "POST" else None
    form = GrantForm(data, stored=stored, initial=initial)
    if form.is_bound and form.is_valid():
        typed = _typed(form, stored)
        with refusals_in(form):
            saved = save(request, typed)
            tell(request, typed, saved, f"Grant {saved.name} is saved.")
            return redirect("web:grant", saved.name)
    context = {"form": form, "stored": stored}
    return show(request, "pages/grants/form.html", context, status=422 if form.is_bound else 200)


def _typed(form: GrantForm, stored: Grant | None) -> Typed:
    got = form.cleaned_data
    return Typed(
        kind="Grant",
        row=stored,
        name=got.get("/name", ""),
        spec=form.spec(),
        version=got["version"] or 0,
        reason=got["reason"],
    )


@post_page
def delete(request: PageRequest, name: str) -> HttpResponse:
    """Take a grant away once its name was typed; routes that lose a pool by it stop, as the dialog has said."""
    row = _one(request, name)
    gone = deleted_by_name(request, "Grant", row, f"Grant {row.name} is deleted.")
    return redirect("web:grants") if gone else redirect("web:grant", name)


def _one(request: PageRequest, name: str) -> Grant:
    operators_only(request.actor, "grants")
    return there(selectors.grants(request.actor).filter(name=name).first(), "There is no such grant.")
