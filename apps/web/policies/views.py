"""Policies: the list, one with its settings and users, its form, its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.definitions import services
from apps.definitions.key_sets.following import key_set_of
from apps.definitions.models import Policy
from apps.definitions.previewing.effective_rules import settings_of_policy
from apps.definitions.selectors import only, policies
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.traffic.policy import Rules
from apps.web.kit.object_forms import form_for
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import deleted_by_name, save_form, telling, version_shown
from apps.web.kit.worst_first import first_of
from apps.web.policies.form import PolicyForm

SHOWN = 200
TITLES = {block.name: block.about.label for block in fields_of(Rules)}


@page
def index(request: PageRequest) -> HttpResponse:
    """Every policy that the actor sees, with what it is about and how many routes name it."""
    rows, context = first_of(policies(request.actor).annotate(named=Count("route_links")), SHOWN)
    titled = [(row, [title for block, title in TITLES.items() if block in row.rules]) for row in rows]
    return show(request, "pages/policies/list.html", context | {"rows": titled})


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One policy: its settings, for whom it holds, which routes name it."""
    actor = request.actor
    row = only(policies(actor), pk)
    context = {
        "policy": row,
        "settings": settings_of_policy(row),
        "key_set": key_set_of(row),
    }
    return show(request, "pages/policies/detail.html", context)


@page
def new(request: PageRequest) -> HttpResponse:
    """A policy of the actor's account, or of one that an operator names."""
    return _form(request, None)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """Change its settings and for whom it holds."""
    return _form(request, only(policies(request.actor), pk))


def _form(request: PageRequest, stored: Policy | None) -> HttpResponse:
    request.actor.may_write()
    form = form_for(request, stored, policies(request.actor), partial(PolicyForm, actor=request.actor))
    if request.method == "POST" and request.GET.get("partial"):
        return show(request, "pages/policies/form.html", {"form": form})
    if saved := save_form(request, form, "Policy", stored, form.spec, _saved):
        return redirect("web:policy", saved.pk)
    context: dict[str, Any] = {"form": form, "stored": stored, "version": version_shown(request, stored)}
    return show(request, "pages/policies/form.html", context, status=422 if form.is_bound else 200)


def _saved(row: Policy) -> str:
    return f"Policy {row.name} is saved. Its routes apply it within moments."


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a policy that no route names any more, once its name was typed."""
    request.actor.may_write()
    row = only(policies(request.actor), pk)
    gone = deleted_by_name(request, "Policy", row, f"Policy {row.name} is deleted.")
    return redirect("web:policies") if gone else redirect("web:policy", pk)


@post_page
def fetch_key_set(request: PageRequest, pk: int) -> HttpResponse:
    """Have the key set that its own rules name fetched now."""
    say_fetched(request, partial(services.fetch_key_set_of_policy, policy_id=pk))
    return redirect("web:policy", pk=pk)


def say_fetched(request: PageRequest, fetch: Callable[..., object]) -> None:
    """Have it fetched, or say why not."""
    with telling(request, "The key set is being fetched; its keys and any error appear below in a moment."):
        fetch(actor=request.actor)
