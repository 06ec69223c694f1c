"""Planning a capacity test: the form, what would happen, and saving it."""

from __future__ import annotations

from functools import partial
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.accounts.models import Account
from apps.accounts.quotas import quota
from apps.accounts.selectors import accounts
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import CapacityTest
from apps.definitions.selectors import capacity_tests, only
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.base.writing import reference, write
from apps.definitions.shapes.operations.capacity_test import CapacityTestSpec
from apps.web.capacity.form import CapacityTestForm
from apps.web.capacity.words import what_happens
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.object_forms import copied, form_for
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import Typed, save, tell, version_sent, version_shown

TEMPLATE = "pages/capacity_tests/form.html"
# What the chosen pool narrows.
TARGETS = ("/spec/target/region", "/spec/target/hostname")
QUOTAS = (
    ("test_rate", "requests/s"),
    ("test_connections", "connections"),
    ("test_seconds", "seconds a run"),
    ("test_runs_at_once", "runs at once"),
)


@page
def new(request: PageRequest) -> HttpResponse:
    """The empty form, and creating; `?pool=` and `?region=` choose what is loaded."""
    return _form(request, None)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """The filled form, and saving; an older version than the stored one is refused."""
    request.actor.may_write()
    return _form(request, only(capacity_tests(request.actor), pk))


@post_page
def check(request: PageRequest) -> HttpResponse:
    """What would happen with the form as it is typed; stores nothing."""
    request.actor.may_write()
    form = CapacityTestForm(request.POST, actor=request.actor, stored=None, start={})
    context = {"targets": [form[name] for name in TARGETS], **said_of(form.spec(), _owner(request, None))}
    return show(request, "pages/capacity_tests/said.html", context)


def _form(request: PageRequest, stored: CapacityTest | None) -> HttpResponse:
    request.actor.may_write()
    source = None if stored else copied(request, capacity_tests(request.actor))
    chosen = {"pool": reference(source.pool, request.actor.account.pk)} if source else request.GET.dict()
    form_of = partial(CapacityTestForm, actor=request.actor, start=chosen)
    form = form_for(request, stored, capacity_tests(request.actor), form_of)
    if form.is_bound:
        form.is_valid()
        typed = _typed(request, form)
        form.errors.clear()  # the document says its own sentences
        with refusals_in(form):
            saved = save(request, typed)
            tell(
                request, typed, saved, f"Capacity test {saved.name} is saved. It sends no load until someone starts it."
            )
            return redirect("web:capacity-test", pk=saved.pk)
    spec = form.spec() if form.is_bound else form.spec(_as_sent(form))
    context = {
        "form": form,
        "stored": stored,
        "version": version_shown(request, stored),
        **said_of(spec, _owner(request, stored)),
    }
    return show(request, TEMPLATE, context, status=422 if form.is_bound else 200)


def _as_sent(form: CapacityTestForm) -> dict[str, Any]:
    """The form as it would be sent without a change."""
    return {name: form.get_initial_for_field(field, name) or _first(field) for name, field in form.fields.items()}


def _first(field: forms.Field) -> str:
    """What a browser sends of a field that nobody touched."""
    widget = field.widget
    return str(next((value for value, _ in widget.choices), "")) if isinstance(widget, forms.Select) else ""


def _owner(request: PageRequest, stored: CapacityTest | None) -> Account:
    """Whose quotas count: operators choose the account in the form."""
    if stored is not None:
        return stored.account
    name = request.POST.get("/account", "")[:63]
    chosen = accounts(request.actor).filter(name=name).first() if name.isprintable() else None
    return chosen or request.actor.account


def _typed(request: PageRequest, form: CapacityTestForm) -> Typed:
    return Typed(
        kind="CapacityTest",
        row=form.stored,
        name=request.POST.get("/name", "").strip(),
        account=request.POST.get("/account"),
        spec=form.spec(),
        version=version_sent(request),
        reason=request.POST.get("reason", "").strip()[:400],
    )


def said_of(spec: dict[str, Any], owner: Account) -> dict[str, Any]:
    """The test in sentences, with what contradicts itself, beside what the account that owns it may do."""
    field_errors: tuple[FieldError, ...] = ()
    try:
        spec = write(CapacityTestSpec, read_or_raise(CapacityTestSpec, spec))
    except Invalid as error:
        field_errors = tuple(error.field_errors)
    return {
        "sentences": () if field_errors else what_happens(spec),
        "field_errors": [field_error.detail for field_error in field_errors],
        "owner": owner,
        "quotas": [(unit, quota(owner, name)) for name, unit in QUOTAS],
    }
