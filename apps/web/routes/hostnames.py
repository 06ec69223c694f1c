"""Hostnames: claimed, what to set in DNS to verify one, whether it is set, and given up again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Case, IntegerField, OuterRef, Value, When
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.accounts.hostnames import verification
from apps.accounts.hostnames.claims import COOLDOWN, state_of
from apps.accounts.models import Hostname
from apps.accounts.quotas import quota
from apps.audit.selectors import entries_of
from apps.core.errors import Conflict
from apps.definitions import selectors
from apps.definitions.models import Route
from apps.definitions.writing.kinds import hostnames
from apps.web.finding.sorting import Sorting, chips, sorted_page
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import confirmed, telling
from apps.web.kit.shape_fields import ask_for_owner
from apps.web.kit.worst_first import counted, keyset_page

PER_PAGE = 100
SORTS = {"Hostname": ("name",)}  # the one column with an index
STATE_WORDS = {"waiting": "waiting for verification"}
STATES = {
    "waiting": ("waiting", "Waiting for verification"),
    "verified": ("done", "Verified"),
    "released": ("superseded", "Released"),
}
VERIFICATIONS = {"dns": "by DNS", "http": "by HTTP", "operator": "by an operator", "grant": "by a grant"}


class ClaimForm(forms.Form):
    """One name, and before it, for operators, whose it is."""

    use_required_attribute = False

    def __init__(self, *args: Any, request: PageRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plain = {"autocomplete": "off", "spellcheck": "false", "class": "mono", "placeholder": "shop.example.com"}
        self.fields["/name"] = forms.CharField(
            label="Hostname",
            max_length=300,
            strip=True,
            widget=forms.TextInput(attrs=plain),
            help_text="One hostname, or *.example.com for all subdomains of a domain you own.",
        )
        if request.actor.is_operator:
            ask_for_owner(self)


@page
def index(request: PageRequest) -> HttpResponse:
    """Claimed names, those that wait for verification first or as `?sort=` says; `?q=` and `?state=` narrow."""
    rows = selectors.hostnames(request.actor)
    rows = rows.annotate(route_count=counted(Route.objects.filter(hostname=OuterRef("pk")), "hostname"))
    query, state, after = (request.GET.get(name, "").strip()[:253] for name in ("q", "state", "after"))
    if query and query.isprintable():
        rows = rows.filter(name__icontains=query)
    if state == "waiting":
        rows = rows.filter(verification="", released_at=None)
    elif state == "released":
        rows = rows.exclude(released_at=None)
    elif state == "verified":
        rows = rows.filter(released_at=None).exclude(verification="")
    sorting = Sorting.asked(SORTS, request.GET.get("sort", ""))
    if sorting.head:
        found, next_after = sorted_page(rows, sorting, request.GET.get("after", ""), PER_PAGE)
    else:
        waits = When(verification="", released_at=None, then=Value(0))
        rank = Case(waits, default=Value(9), output_field=IntegerField())
        found, next_after = keyset_page(rows, rank, ("name",), after, PER_PAGE)
    context = {
        "rows": [(row, *STATES[state_of(row)], VERIFICATIONS.get(row.verification, "")) for row in found],
        "query": query,
        "state": state,
        "after": after,
        "next_after": next_after,
        "sorting": sorting,
        "paged": bool(after or next_after),
        "chips": chips(request.GET, {"q": "Search", "state": "Status"}, STATE_WORDS),
        "most": quota(request.actor.account, "hostnames"),
    }
    return show(request, "pages/hostnames/list.html", context)


@page
def new(request: PageRequest) -> HttpResponse:
    """Claim a name."""
    request.actor.may_write(hostnames.NOUN)
    form = ClaimForm(request.POST or None, request=request)
    if request.method == "POST" and form.is_valid():
        name, account = form.cleaned_data["/name"], form.cleaned_data.get("/account") or None
        with refusals_in(form):
            row = hostnames.claim(actor=request.actor, name=name, account=account)
            said = "is verified" if row.verification else "is added. Add one DNS record to verify that you own it"
            messages.success(request, f"{row.name} {said}.")
            return redirect("web:hostname", pk=row.pk)
    status = 422 if form.is_bound and form.errors else 200
    return show(request, "pages/hostnames/form.html", {"form": form}, status=status)


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One name: how it stands, what verifies it, what was found, and the routes that use it."""
    row = selectors.only(selectors.hostnames(request.actor), pk)
    state, words = STATES[state_of(row)]
    context: dict[str, Any] = {
        "row": row,
        "state": state,
        "words": f"{words} {VERIFICATIONS.get(row.verification, '')}".strip() if state == "done" else words,
        "txt_name": verification.txt_name(row.name),
        "txt_value": verification.txt_value(row.challenge),
        "url": verification.http_url(row.name, row.challenge),
        "free_at": row.released_at + COOLDOWN if row.released_at else None,
    }
    if not request.GET.get("partial"):
        context["entries"] = entries_of(request.actor, "Hostname", row.pk, limit=8)
    return show(request, "pages/hostnames/detail.html", context)


@post_page
def check(request: PageRequest, pk: int) -> HttpResponse:
    """Look for the challenge now and say what was found."""
    row = hostnames.check(actor=request.actor, hostname_id=_visible(request, pk).pk)
    tell = messages.success if row.verification else messages.warning
    tell(request, row.last_check_message or "There was nothing to check.")
    return redirect("web:hostname", pk=pk)


@post_page
def verify(request: PageRequest, pk: int) -> HttpResponse:
    """An operator's word."""
    with telling(request):
        row = hostnames.verify(
            actor=request.actor, hostname_id=_visible(request, pk).pk, reason=request.POST.get("reason", "")[:400]
        )
        messages.success(request, f"{row.name} is verified. Its routes go live now.")
    return redirect("web:hostname", pk=pk)


@post_page
def release(request: PageRequest, pk: int) -> HttpResponse:
    """Give the name up, once it was typed."""
    row = _visible(request, pk)
    if not confirmed(request, row.name, "release it"):
        return redirect("web:hostname", pk=pk)
    try:
        hostnames.release(actor=request.actor, hostname_id=row.pk, reason=request.POST.get("reason", "")[:400])
    except Conflict as error:
        messages.error(request, error.detail)
        return redirect("web:hostname", pk=pk)
    rest = (
        (f"no other account can claim it for {COOLDOWN.days} days")
        if row.verification
        else "any account can claim it now"
    )
    messages.success(request, f"{row.name} is released; {rest}.")
    return redirect("web:hostnames")


def _visible(request: PageRequest, pk: int) -> Hostname:
    return selectors.only(selectors.hostnames(request.actor), pk)
