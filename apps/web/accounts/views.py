"""Accounts: their quotas and what is used of them, their people, suspension, another one to act for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpResponse
from django.middleware.csrf import rotate_token
from django.shortcuts import redirect

from apps.accounts import choosing
from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.accounts.quota_bounds import DEFAULTS
from apps.accounts.quotas import quotas_of
from apps.accounts.selectors import account_named, accounts
from apps.core.errors import NotFound
from apps.definitions.reading.describing import describe
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.platform.account import Quotas
from apps.definitions.writing.rules.quotas import counts
from apps.members import impersonation, selectors
from apps.web.accounts.people import people_of
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.object_forms import form_for
from apps.web.kit.pages import (
    PageRequest,
    forms_only,
    operators_only,
    page,
    post_page,
    recognise,
    show,
    signed_in,
)
from apps.web.kit.presets import Preset, fill_in
from apps.web.kit.saving import Typed, save, tell, telling, version_sent, version_shown
from apps.web.kit.shape_forms import Group, ShapeForm
from apps.webhooks.selectors import webhooks

PER_PAGE = 100
REASON = "pages/accounts/reason.html"


def _fields(quotas: Mapping[str, int | str]) -> dict[str, str]:
    return {f"/spec/quotas/{name}": str(most) for name, most in quotas.items()}


PRESETS = {
    "trial": Preset(
        "Trial",
        "A tenth of each default.",
        _fields({name: max(1, most // 10) if most else 0 for name, most in DEFAULTS.items()}),
    ),
    "usual": Preset("Usual", "The default of each quota.", _fields(dict.fromkeys(DEFAULTS, ""))),
    "large": Preset(
        "Large",
        "Ten times each default, and half of each node.",
        _fields({name: most * 10 for name, most in DEFAULTS.items() if most} | {"node_share_percent": 50}),
    ),
    "load-tests": Preset(
        "Capacity tests",
        "One at once, of at most an hour. Other quotas stay.",
        _fields({"test_runs_at_once": 1, "test_rate": 500, "test_connections": 1000, "test_seconds": 3600}),
    ),
}


class AccountForm(ShapeForm):
    """A name (once), a title, and the quotas that differ from the usual ones."""

    kind = "Account"

    @property
    def quotas(self) -> Group:
        """The fields of the quotas, closed as long as each is as usual."""
        return replace(self.folded("quotas"), title="Quotas", hint="An empty quota has its default.")


@page
def index(request: PageRequest) -> HttpResponse:
    """Customers by name, a keyset page at a time (`?after=` is the last one's name); for operators."""
    operators_only(request.actor, "customers")
    rows = accounts(request.actor).filter(kind=Account.Kind.CUSTOMER)
    words = request.GET.get("q", "").strip()[:63]
    if words.isprintable() and words:
        rows = rows.filter(name__contains=words.lower())
    after = request.GET.get("after", "")[:63]
    if after.isascii() and after.isprintable():
        rows = rows.filter(name__gt=after)
    counted = rows.annotate(people=Count("memberships", distinct=True), claims=Count("hostnames", distinct=True))
    found = list(counted[: PER_PAGE + 1])
    context = {
        "rows": found[:PER_PAGE],
        "q": words,
        "after": after,
        "next_after": found[PER_PAGE - 1].name if len(found) > PER_PAGE else None,
    }
    return show(request, "pages/accounts/list.html", context)


@page
def own(request: PageRequest) -> HttpResponse:
    """The account that one acts for."""
    return _detail(request, request.actor.account)


@page
def detail(request: PageRequest, name: str) -> HttpResponse:
    """An account that one may see: customers their own, operators every one."""
    return _detail(request, account_named(request.actor, name))


def _detail(request: PageRequest, account: Account) -> HttpResponse:
    context = people_of(request.actor, account) | {
        "quotas": _quotas(request.actor, account),
        "is_own": account.pk == request.actor.account.pk,
        "may_operate": request.actor.is_operator and request.actor.role != "viewer" and not account.is_operator,
        "may_impersonate": request.actor.is_operator and not account.is_operator,
    }
    return show(request, "pages/accounts/detail.html", context)


def _quotas(actor: Actor, account: Account) -> list[dict[str, Any]]:
    """Every quota beside what is used of it."""
    used = {**counts(account), **selectors.counts(account), "webhooks": webhooks(actor).filter(account=account).count()}
    labels = {field.name: field.about.label for field in fields_of(Quotas)}
    return [_quota(labels[name], most, used.get(name)) for name, most in quotas_of(account).items()]


def _quota(words: str, most: int | None, used: int | None) -> dict[str, Any]:
    row: dict[str, Any] = {"words": words, "percent": None}
    if most is None:
        return row | {"text": "no limit" if used is None else f"{used:,}"}
    if used is None:
        return row | {"text": f"at most {most:,}"}
    percent = round(100 * used / most) if most else 100
    kind = "bad" if used >= most else "warn" if percent >= 80 else ""
    return row | {"percent": percent, "kind": kind, "text": f"{used:,} of {most:,}"}


@page
def new(request: PageRequest) -> HttpResponse:
    """Make a customer account; people come in by invitation."""
    operators_only(request.actor, "customers")
    return _form(request, None)


@page
def edit(request: PageRequest, name: str) -> HttpResponse:
    """Another title, other quotas."""
    operators_only(request.actor, "customers")
    return _form(request, account_named(request.actor, name))


def _form(request: PageRequest, stored: Account | None) -> HttpResponse:
    request.actor.must_operate("accounts")
    customers = accounts(request.actor).filter(kind=Account.Kind.CUSTOMER)
    form = form_for(request, stored, customers, partial(AccountForm, names={}))
    chosen = fill_in(request, form, PRESETS)
    if form.is_bound and form.is_valid():
        typed = Typed(
            kind="Account",
            row=stored,
            name=form.cleaned_data.get("/name", ""),
            spec=form.spec() | {"kind": stored.kind if stored else Account.Kind.CUSTOMER},
            version=version_sent(request),
        )
        with refusals_in(form):
            saved = save(request, typed)
            done = f"{saved.title} is saved." if stored else f"{saved.title} is created. Invite its first member."
            tell(request, typed, saved, done)
            return redirect("web:account", saved.name)
    context: dict[str, Any] = {"form": form, "stored": stored, "version": version_shown(request, stored)}
    context |= {"presets": PRESETS, "chosen": chosen}
    return show(request, "pages/accounts/form.html", context, status=422 if form.is_bound else 200)


@page
def suspend(request: PageRequest, name: str) -> HttpResponse:
    """With a reason: people and programs of the account may do nothing until it is resumed; its traffic goes on."""
    operators_only(request.actor, "customers")
    request.actor.must_operate("accounts")
    account = account_named(request.actor, name)
    if account.is_operator:
        raise NotFound("The operator account is not suspended.")
    reason, error = _reason(request)
    if reason and not error:
        suspended = account.suspended_at is None
        spec = describe(account) | {"suspended": suspended}
        typed = Typed(kind="Account", row=account, spec=spec, version=account.version, reason=reason)
        with telling(request):
            save(request, typed)
            words = "is suspended; its traffic is not affected" if suspended else "has access again"
            messages.success(request, f"{account.title} {words}.")
        return redirect("web:account", name)
    context = {
        "account": account,
        "reason": reason,
        "error": error,
        "act": "resume" if account.suspended_at else "suspend",
    }
    return show(request, REASON, context, status=422 if error else 200)


def _reason(request: PageRequest) -> tuple[str, str]:
    """What was given as the reason, and what is wrong with it; nothing is wrong before anything was sent."""
    reason = request.POST.get("reason", "").strip()
    if request.method == "POST" and (not reason or len(reason) > 400 or not reason.isprintable()):
        return reason, "Enter a reason of at most 400 characters. It is recorded in the audit log."
    return reason, ""


@page
def impersonate(request: PageRequest, name: str) -> HttpResponse:
    """With a reason: see the pages as the account's viewer for an hour, or until Stop."""
    operators_only(request.actor, "customers")
    account = account_named(request.actor, name)
    if account.is_operator:
        raise NotFound("Operators already have access to the operator account.")
    reason, error = _reason(request)
    if reason and not error:
        request.session[choosing.IMPERSONATION] = impersonation.begin(
            actor=request.actor, account=account, reason=reason
        )
        return redirect("web:overview")
    context = {"account": account, "reason": reason, "error": error, "act": "impersonate"}
    return show(request, REASON, context, status=422 if error else 200)


@post_page
def stop_impersonating(request: PageRequest) -> HttpResponse:
    """Be the operator again."""
    found = request.session.pop(choosing.IMPERSONATION, None)
    if found is None:
        return redirect("web:overview")
    impersonation.end(name=request.user.get_username(), session=found)
    messages.success(request, f"You no longer view {request.actor.account.title}.")
    return redirect("web:account", request.actor.account.name)


@forms_only
@signed_in
def switch(request: PageRequest) -> HttpResponse:
    """Act for another account of one's own; also out of one that is suspended."""
    recognise(request)
    name = request.POST.get("account", "")
    chosen = next((each for each in request.memberships if each.account.name == name), None)
    if chosen is None:
        raise Http404("There is no such account, or you are not a member of it.")
    if found := request.session.pop(choosing.IMPERSONATION, None):
        impersonation.end(name=request.user.get_username(), session=found)
    request.session[choosing.CHOSEN] = chosen.account_id
    rotate_token(request)  # forms that stand open in other tabs are of the former account
    messages.success(request, f"You now act for {chosen.account.title}.")
    return redirect("web:overview")
