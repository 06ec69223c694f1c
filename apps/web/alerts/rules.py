"""The rules of an account: built-in ones to switch off or replace, and its own."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect

from apps.alerts import selectors
from apps.alerts.rules import FALLING, Rule
from apps.core.errors import there
from apps.core.written.numbers import measured
from apps.definitions.models import AlertRule
from apps.definitions.reading.describing import describe
from apps.definitions.selectors import alert_rules, only
from apps.definitions.services import delete_object, save_object
from apps.definitions.shapes.operations.alert_watches import BUILT_IN, WATCHES
from apps.web.alerts.forms import RuleForm
from apps.web.alerts.now import SEVERITY_MARKS
from apps.web.kit.object_forms import Way, copy_of, edit_object, form_for
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import deleted_by_name
from apps.web.kit.undoing import say_done


@page
def index(request: PageRequest) -> HttpResponse:
    """Every rule of the actor's account; operators also see the rows of others."""
    own = [_shown(rule) for rule in selectors.rules(request.actor)]
    others = alert_rules(request.actor).exclude(account=request.actor.account)
    context: dict[str, Any] = {"rows": own, "others": list(others[:200]) if request.actor.is_operator else []}
    return show(request, "pages/alerts/rules.html", context)


def _shown(rule: Rule) -> dict[str, Any]:
    watch = WATCHES[rule.watches]
    return {
        "rule": rule,
        "watch": watch,
        "mark": SEVERITY_MARKS[rule.severity],
        "built_in": rule.name in BUILT_IN,
        "threshold": _threshold(rule),
    }


def _threshold(rule: Rule) -> str:
    bounds = WATCHES[rule.watches].threshold
    if bounds is None or rule.threshold is None:
        return ""
    word = "below" if rule.watches in FALLING else "from"
    return f"{word} {measured(rule.threshold, bounds.unit)}"


@page
def new(request: PageRequest) -> HttpResponse:
    """A rule of one's own; `?name=` is that of a built-in rule whose place it takes."""
    request.actor.may_write("alert-rules")
    return _form(request, None)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """Change a rule."""
    request.actor.may_write("alert-rules")
    return _form(request, only(alert_rules(request.actor), pk))


def _form(request: PageRequest, stored: AlertRule | None) -> HttpResponse:
    form_of = partial(RuleForm, actor=request.actor, built_in=request.GET.get("name", ""))
    form = form_for(request, stored, alert_rules(request.actor), form_of)
    return edit_object(request, form, Way.of("web:alert-rules", "Alert rules"), copy_of("alert-rule", stored))


@post_page
def switch(request: PageRequest, name: str) -> HttpResponse:
    """Switch a rule of the own account off, or on again; a built-in one that is as it always was needs no row."""
    actor = request.actor
    actor.may_write("alert-rules")
    rule = there(next((each for each in selectors.rules(actor) if each.name == name), None))
    before = describe(rule.row) if rule.row else {"watches": rule.watches}
    spec = before | {"enabled": not rule.enabled}
    if name in BUILT_IN and spec["enabled"] and _says_nothing(rule.row):
        delete_object(actor=actor, kind="AlertRule", name=name)
    else:
        save_object(actor=actor, kind="AlertRule", name=name, spec=spec)
    say_done(request, f"Rule {name} is {'on' if spec['enabled'] else 'off'}.")
    return redirect("web:alert-rules")


def _says_nothing(row: AlertRule | None) -> bool:
    return row is None or (not row.only and row.threshold is None and row.for_s is None and row.severity is None)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a rule once its name was typed; a built-in rule by its name is back."""
    request.actor.may_write("alert-rules")
    row = only(alert_rules(request.actor), pk)
    deleted_by_name(request, "AlertRule", row, f"Rule {row.name} is deleted.")
    return redirect("web:alert-rules")
