"""The form of a route, as documents want it; every error goes back to the field that it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.functional import cached_property

from apps.accounts.actors import Actor
from apps.core.errors import FieldError
from apps.definitions.models import Route
from apps.definitions.previewing.capabilities import standings_of
from apps.definitions.reading.describing import describe
from apps.definitions.selectors import load_balancers
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.servers.objective import ServiceObjective
from apps.definitions.shapes.traffic.route import (
    CODES,
    KINDS,
    MATCHES,
    Action,
    CookieCondition,
    FixedResponse,
    HeaderCondition,
    QueryCondition,
    Redirect,
    RouteSpec,
    Share,
)
from apps.web.capabilities.notes import LEADS, Named, Note, note_fields, path_of
from apps.web.kit.edit_conflicts import remember
from apps.web.kit.shape_fields import LINES, account_field, offers, words

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ACTIONS = [(field.name, field.about.label) for field in fields_of(Action)]
# Removed rows keep their numbers until the form is sent, so there are more of them than a route may have.
MOST_ROWS = 200
# Where an error of the document belongs in this form; pointers to rows are worked out in `RouteEntry`.
FIELDS = {
    "/name": "name",
    "/account": "account",
    "/spec/load_balancer": "load_balancer",
    "/spec/hostname": "hostname",
    "/spec/path": "path",
    "/spec/path_kind": "path_kind",
    "/spec/methods": "methods",
    "/spec/client_networks": "client_networks",
    "/spec/scheme": "scheme",
    "/spec/prefix_rewrite": "prefix_rewrite",
    "/spec/mirror": "mirror",
    "/spec/policies": "policies",
    "/spec/action": "action",
    "/spec/action/redirect": "redirect_host",
    "/spec/action/redirect/code": "redirect_code",
    "/spec/action/redirect/scheme": "redirect_scheme",
    "/spec/action/redirect/host": "redirect_host",
    "/spec/action/redirect/path": "redirect_path",
    "/spec/action/redirect/port": "redirect_port",
    "/spec/action/redirect/prefix": "redirect_prefix",
    "/spec/action/redirect/keep_query": "redirect_keep_query",
    "/spec/action/redirect/query": "redirect_query",
    "/spec/action/fixed_response/status": "fixed_status",
    "/spec/action/fixed_response/content_type": "fixed_content_type",
    "/spec/action/fixed_response/body": "fixed_body",
    "/spec/objective": "objective_availability",
    "/spec/objective/availability": "objective_availability",
    "/spec/objective/latency_ms": "objective_latency_ms",
    "/spec/objective/latency_share": "objective_latency_share",
}
OBJECTIVE = tuple(field.name for field in fields_of(ServiceObjective))
DECIMAL, WHOLE = (forms.TextInput(attrs={"inputmode": word}) for word in ("decimal", "numeric"))
ROW = re.compile(r"/spec/(?:action/)?(pools|headers|query|cookies)(?:/(\d+)(?:/(pool|weight|name|match|value))?)?")


def _needed(said: dict[str, Any], **attrs: str) -> forms.CharField:
    field = _text(said, **attrs)
    field.required = True
    field.error_messages["required"] = f"Fill in the {said['label'].lower()}."
    return field


def _text(said: dict[str, Any], **attrs: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"} | attrs)
    return forms.CharField(**said | {"required": False}, widget=widget)


class RouteForm(forms.Form):
    """Everything of a route that is there once; what values may be is said by the document."""

    version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    began = forms.CharField(required=False, widget=forms.HiddenInput)
    account = account_field(
        "The account that owns the route.",
        required=True,
        error_messages={"required": "Choose the account that owns the route."},
    )
    name = _needed(
        {
            "label": "Name",
            "help_text": "Used in YAML and the API, e.g. shop-checkout. Can't be changed later.",
        },
        placeholder="shop-checkout",
    )
    load_balancer = forms.ChoiceField(
        **words(RouteSpec, "load_balancer") | {"required": True},
        error_messages={"required": "Choose a load balancer."},
    )
    hostname = _needed(words(RouteSpec, "hostname"), placeholder="shop.example.com", **offers("hostnames"))
    path = _needed(words(RouteSpec, "path"), placeholder="/")
    path_kind = forms.ChoiceField(**words(RouteSpec, "path_kind") | {"required": True}, choices=list(KINDS.items()))
    methods = forms.MultipleChoiceField(
        **words(RouteSpec, "methods"),
        choices=[(method, method) for method in METHODS],
        widget=forms.CheckboxSelectMultiple,
    )
    scheme = forms.ChoiceField(
        **words(RouteSpec, "scheme"),
        choices=(("", "http and https"), ("https", "https only"), ("http", "http only")),
    )
    client_networks = forms.CharField(**words(RouteSpec, "client_networks"), widget=forms.Textarea(attrs=LINES))
    action = forms.ChoiceField(label="Action", choices=ACTIONS, widget=forms.RadioSelect)
    prefix_rewrite = _text(words(RouteSpec, "prefix_rewrite"), placeholder="/")
    mirror = _text(words(RouteSpec, "mirror"), **offers("pools"))
    policies = forms.CharField(
        **words(RouteSpec, "policies") | {"required": False}, widget=forms.Textarea(attrs={"class": "mono", "rows": 3})
    )
    redirect_code = forms.TypedChoiceField(
        **words(Redirect, "code"), choices=list(CODES.items()), coerce=int, empty_value=None
    )
    redirect_scheme = forms.ChoiceField(
        **words(Redirect, "scheme"), choices=(("", "Same as the request"), ("https", "https"), ("http", "http"))
    )
    redirect_host = _text(words(Redirect, "host"), placeholder="www.example.com")
    redirect_path = _text(words(Redirect, "path"), placeholder="/")
    redirect_port = forms.IntegerField(**words(Redirect, "port"))
    redirect_prefix = _text(words(Redirect, "prefix"), placeholder="/")
    redirect_query = _text(words(Redirect, "query"), placeholder="from=old")
    redirect_keep_query = forms.BooleanField(**words(Redirect, "keep_query"))
    fixed_status = forms.IntegerField(**words(FixedResponse, "status"))
    fixed_content_type = _text(words(FixedResponse, "content_type"))
    fixed_body = forms.CharField(
        **words(FixedResponse, "body"), strip=False, widget=forms.Textarea(attrs={"class": "mono", "rows": 4})
    )
    objective_availability = forms.FloatField(**words(ServiceObjective, "availability"), widget=DECIMAL)
    objective_latency_ms = forms.IntegerField(**words(ServiceObjective, "latency_ms"), widget=WHOLE)
    objective_latency_share = forms.FloatField(**words(ServiceObjective, "latency_share"), widget=DECIMAL)
    reason = forms.CharField(
        label="Reason",
        required=False,
        help_text="Recorded in the audit log.",
        widget=forms.TextInput(attrs={"maxlength": "400"}),
    )

    def __init__(self, actor: Actor, row: Route | None, **kwargs: Any) -> None:
        super().__init__(use_required_attribute=False, **kwargs)
        names = [balancer.name for balancer in load_balancers(actor).prefetch_related(None)]
        _choices(self.fields["load_balancer"], [("", "Choose one"), *((name, name) for name in names)])
        if row is not None:
            del self.fields["name"]
        if row is not None or not actor.is_operator:
            del self.fields["account"]
        self.fields["load_balancer"].widget.attrs |= LEADS
        chosen = self["load_balancer"].value()
        self.chosen: str = chosen if chosen in names else ""


def _choices(field: forms.Field, choices: list[tuple[str, str]]) -> None:
    if isinstance(field, forms.ChoiceField):
        field.choices = choices


# What rows of conditions look at.
CONDITIONS: dict[str, dict[str, Any]] = {
    "headers": {"shape": HeaderCondition, "placeholder": "X-Version"},
    "query": {"shape": QueryCondition, "placeholder": "version"},
    "cookies": {"shape": CookieCondition, "placeholder": "beta"},
}


class PoolForm(forms.Form):
    """One weighted pool."""

    pool = _needed(words(Share, "pool"), placeholder="shop", **offers("pools"))
    weight = forms.IntegerField(**words(Share, "weight") | {"required": True}, initial=100)


class ConditionForm(forms.Form):
    """One condition on a header, a query parameter or a cookie; the label of its name says on which."""

    name = _needed(words(HeaderCondition, "name"), placeholder="X-Version")
    match = forms.ChoiceField(
        **words(HeaderCondition, "match") | {"required": True}, initial="equals", choices=list(MATCHES.items())
    )
    value = _text(words(HeaderCondition, "value"), placeholder="beta")

    def __init__(self, *args: Any, shape: type[Shape], placeholder: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].label = words(shape, "name")["label"]
        self.fields["name"].widget.attrs["placeholder"] = placeholder


class _Rows(forms.BaseFormSet):  # type: ignore[type-arg] # not subscriptable when it runs
    deletion_widget = forms.HiddenInput

    @cached_property
    def spare(self) -> forms.Form:
        """The row that the page copies."""
        spare: forms.Form = self.empty_form
        return spare


PoolRows: Any = forms.formset_factory(
    PoolForm, formset=_Rows, extra=0, can_delete=True, max_num=MOST_ROWS, absolute_max=MOST_ROWS
)
ConditionRows: Any = forms.formset_factory(
    ConditionForm, formset=_Rows, extra=0, can_delete=True, max_num=MOST_ROWS, absolute_max=MOST_ROWS
)


class RouteEntry:
    """The whole form: head, pools and conditions; `row` is the route that is edited, None for a new one."""

    def __init__(
        self,
        actor: Actor,
        row: Route | None,
        data: QueryDict | None,
        start: Mapping[str, str],
        spec: Mapping[str, Any] | None = None,
        source: Route | None = None,
    ) -> None:
        """`data` is what was sent, None for a form that is opened; `spec` is shown instead of what is stored.

        A new route begins as the route `source` is, with another name.
        """
        self.row = row
        self.stored = describe(row) if row else describe(source) | {"assertions": []} if source else {}
        first = initial_of(spec or self.stored, row) if row else copy_of(source) if source else blank(actor, start)
        self.head = RouteForm(actor, row, data=data, initial=first["head"])
        # Rows that were sent stand for themselves: one that equals what is stored must not count as left blank.
        rows = first if data is None else {}
        self.pools = PoolRows(data=data, prefix="pools", initial=rows.get("pools"))
        self.conditions = {
            name: ConditionRows(data=data, prefix=name, initial=rows.get(name), form_kwargs=words)
            for name, words in CONDITIONS.items()
        }
        standings = standings_of(self.head.chosen)
        # A value that is sent nevertheless is rejected with the reason.
        self.capabilities: list[Note] = note_fields("Route", self.named(), standings, alone=True)

    def named(self) -> Iterator[Named]:
        """Every field with its path in the table."""
        for name, pointer in {name: pointer for pointer, name in FIELDS.items()}.items():
            if name in self.head.fields:
                yield self.head[name], path_of(pointer)
        for name, rows in {"action.pools": self.pools, **self.conditions}.items():
            for form in (*rows.forms, rows.spare):
                yield from ((bound, f"{name}.{bound.name}") for bound in form if bound.name != "DELETE")

    def is_valid(self) -> bool:
        """Whether every field could be read at all; what the values mean is checked when the route is saved."""
        conditions = [rows.is_valid() for rows in self.conditions.values()]
        return all([self.head.is_valid(), *conditions, self.pools.is_valid() or self._without_pools()])

    def _without_pools(self) -> bool:
        return self.head.cleaned_data.get("action") in ("redirect", "fixed_response")

    def spec(self) -> dict[str, Any]:
        """The document's spec, as far as it was filled in."""
        got = self.head.cleaned_data
        action = got.get("action") or "pools"
        spec: dict[str, Any] = {
            "load_balancer": got.get("load_balancer") or None,
            "hostname": got.get("hostname") or None,
            "path": got.get("path") or "/",
            "path_kind": got.get("path_kind") or "prefix",
            "methods": got.get("methods") or [],
            "policies": (got.get("policies") or "").split(),
            "scheme": got.get("scheme") or None,
            "client_networks": got.get("client_networks", "").split(),
            "action": {action: self._action(action, got)},
        }
        for name, rows in self.conditions.items():
            spec[name] = [_condition(form.cleaned_data) for form in self._kept(rows, "name")]
        for name in ("prefix_rewrite", "mirror"):
            spec[name] = (got.get(name) or None) if action == "pools" else None
        objective = {name: value for name in OBJECTIVE if (value := got.get(f"objective_{name}")) is not None}
        spec["objective"] = objective or None
        # What this form does not show stays as it is stored.
        return {name: value for name, value in self.stored.items() if name not in spec} | spec

    def _action(self, action: str, got: Mapping[str, Any]) -> Any:
        if action == "redirect":
            names = ("code", "scheme", "host", "port", "path", "prefix", "query")
            parts = {name: got.get(f"redirect_{name}") for name in names}
            parts = {name: None if value == "" else value for name, value in parts.items()}
            return parts | {"keep_query": bool(got.get("redirect_keep_query"))}
        if action == "fixed_response":
            body = (got.get("fixed_body") or "").replace("\r\n", "\n")
            kind = {"content_type": got["fixed_content_type"]} if got.get("fixed_content_type") else {}
            return {"status": got.get("fixed_status"), "body": body} | kind
        kept = [form.cleaned_data for form in self._kept(self.pools, "pool")]
        return [
            {"pool": each["pool"]} | ({} if each.get("weight") is None else {"weight": each["weight"]}) for each in kept
        ]

    def _kept(self, rows: Any, field: str) -> list[forms.Form]:
        """Rows that were filled in and not removed, in the order in which the document has them."""
        forms_there = [form for form in rows.forms if hasattr(form, "cleaned_data")]
        return [form for form in forms_there if form.cleaned_data.get(field) and not form.cleaned_data.get("DELETE")]

    def add_errors(self, field_errors: Iterable[FieldError]) -> None:
        """Put each error beside the field that it names; what no field shows goes to the top of the form."""
        for field_error in field_errors:
            form, field = self._form_field(field_error.pointer)
            if field is None or field not in form.fields:
                self.head.add_error(None, field_error.detail)
            elif not form.has_error(field):
                form.add_error(field, field_error.detail)

    def _form_field(self, pointer: str) -> tuple[forms.Form, str | None]:
        name = pointer.removeprefix("/spec/").partition("/")[0]
        if name in ("methods", "policies", "client_networks"):
            return self.head, name
        found = ROW.fullmatch(pointer)
        if found is None:
            return self.head, FIELDS.get(pointer)
        rows, first = (self.pools, "pool") if found[1] == "pools" else (self.conditions[found[1]], "name")
        kept = self._kept(rows, first) if found[2] else [row for row in rows.forms if not row["DELETE"].value()]
        index = int(found[2] or 0)
        return (kept[index], found[3] or first) if index < len(kept) else (self.head, None)


def _condition(got: Mapping[str, Any]) -> dict[str, Any]:
    match = got.get("match") or "equals"
    # A value that was typed before the condition was changed says nothing any more.
    compares = match not in ("present", "absent")
    return {"name": got["name"], "match": match} | ({"value": got.get("value") or None} if compares else {})


def blank(actor: Actor, start: Mapping[str, str]) -> dict[str, Any]:
    """What a new form begins with; `start` (query parameters) may fill in hostname, path, pool, account and so on.

    Nobody's account is chosen for an operator; a load balancer is, where only one of them stands on fleets.
    """
    plain = ("hostname", "path", "load_balancer", "account")
    serving = load_balancers(actor).prefetch_related(None).exclude(fleets=None).distinct()
    names = list(serving.values_list("name", flat=True)[:2])
    head: dict[str, Any] = {"path": "/", "path_kind": "prefix", "action": "pools"}
    head["load_balancer"] = names[0] if len(names) == 1 else ""
    head |= {"redirect_code": 301, "redirect_keep_query": True, "fixed_status": 200}
    head |= {"fixed_content_type": "text/plain; charset=utf-8"}
    head |= {name: start[name][:255] for name in plain if start.get(name)}
    return {"head": head, "pools": [{"pool": start.get("pool", "")[:127], "weight": 100}]}


def copy_of(source: Route) -> dict[str, Any]:
    """What the form of a copy begins with."""
    first = initial_of(describe(source), source)
    head = {name: value for name, value in first["head"].items() if name not in ("version", "began")}
    return first | {"head": head | {"account": source.account.name}}


def initial_of(spec: Mapping[str, Any], row: Route) -> dict[str, Any]:
    """What the form of this route begins with when it shows `spec`; sending it decides over the row as it is now."""
    action = spec["action"]
    redirect, fixed = action.get("redirect", {}), action.get("fixed_response", {})
    head = {
        name: spec[name]
        for name in ("load_balancer", "hostname", "path", "path_kind", "methods", "scheme", "prefix_rewrite")
    }
    head["mirror"] = spec.get("mirror", "")
    head["policies"] = "\n".join(spec["policies"])
    head |= {f"objective_{name}": value for name, value in (spec.get("objective") or {}).items()}
    head |= {"version": row.version, "began": remember(row)}
    head |= {"action": next(iter(action)), "redirect_keep_query": True}
    head |= {"redirect_code": 301, "fixed_status": 200, "fixed_content_type": "text/plain; charset=utf-8"}
    head |= {f"redirect_{name}": value for name, value in redirect.items()}
    head |= {f"fixed_{name}": value for name, value in fixed.items()}
    pools = action.get("pools") or [{"pool": "", "weight": 100}]
    head["client_networks"] = "\n".join(spec["client_networks"])
    return {"head": head, "pools": pools} | {name: spec[name] for name in CONDITIONS}
