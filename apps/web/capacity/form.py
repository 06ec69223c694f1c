"""The form of a capacity test: its fields by heading, and the document that they make.

Shares are typed in per cent. What is no number goes on as it was typed, so that the document's own sentence says what
is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.definitions.load_targets import hostnames_to_load
from apps.definitions.models import Backend, CapacityTest, Pool
from apps.definitions.selectors import describe, pool_named, pools
from apps.definitions.shapes.base.fields import field_at, fields_of
from apps.definitions.shapes.base.writing import reference, write
from apps.definitions.shapes.operations.capacity_test import (
    KINDS,
    GuardSpec,
    LoadSpec,
    ObjectiveSpec,
    PolicySpec,
    TargetSpec,
)
from apps.web.kit.shape_fields import Text, ask_for_owner, form_field, offers, plain_fields

# A longer list is searched on the server while somebody types.
CHOICES_SHOWN = 100
MONO = {"class": "mono"}
PLAIN = {"autocomplete": "off", "spellcheck": "false"}
# Which numbers a kind of load has; the others are left out of its document.
OF_KIND: Mapping[str, tuple[str, ...]] = {
    "search": ("rate",),
    "constant": ("rate", "duration_s"),
    "users": ("users", "duration_s"),
    "ramp": ("rate", "to_rate", "step", "duration_s"),
    "soak": ("rate", "duration_s"),
}
SHARES = ("/spec/objective/max_error_rate", "/spec/guards/headroom", "/spec/policy/margin", "/spec/policy/max_change")
GROUPS = {
    "Target": ("/account", "/name", "/spec/target/pool", "/spec/target/region", "/spec/target/hostname",
                       "/spec/target/path", "/spec/target/server"),
    "Load": ("/spec/load/kind", "/spec/load/rate", "/spec/load/to_rate", "/spec/load/step", "/spec/load/users",
            "/spec/load/duration_s"),
    "Request details": ("/spec/load/arrivals", "/spec/load/method", "/spec/load/tls", "/spec/load/keep_alive"),
    "Objective": ("/spec/objective/percentile", "/spec/objective/max_latency_ms",
                                  "/spec/objective/max_error_rate"),
    "Safety limits": ("/spec/guards/max_rate", "/spec/guards/max_connections", "/spec/guards/max_duration_s",
                    "/spec/guards/headroom"),
    "Result handling": ("/spec/policy/apply", "/spec/policy/margin", "/spec/policy/max_change", "reason"),
}  # fmt: skip


def _typed(label: str, hint: str, *, required: bool = False, **attrs: str) -> forms.CharField:
    widget = forms.TextInput(attrs=PLAIN | attrs)
    return forms.CharField(label=label, help_text=hint, required=required, widget=widget)


class CapacityTestForm(forms.Form):
    """A test as people type it; whether it makes sense is said by the document and by what is stored."""

    use_required_attribute = False

    def __init__(
        self, data: QueryDict | None, *, actor: Actor, stored: CapacityTest | None, start: Mapping[str, str]
    ) -> None:
        super().__init__(data, initial=texts_of(describe(stored)) if stored else blank(start))
        self.stored = stored
        if stored is None:
            self.fields["/name"] = _typed("Name", "Lowercase letters, digits and hyphens.", required=True)
            if actor.is_operator:
                ask_for_owner(self)
        else:
            self.initial["/spec/target/pool"] = reference(stored.pool, actor.account.pk)
        pool = str(self.data.get("/spec/target/pool") or self.initial.get("/spec/target/pool") or "")
        self.fields |= _target(actor, stored, pool) | _parts()
        self.fields["reason"] = _typed("Reason", "Recorded in the audit log.", maxlength="400")

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields by heading."""
        return [(title, [self[name] for name in names if name in self.fields]) for title, names in GROUPS.items()]

    def spec(self, untouched: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The document, as far as it was filled in; numbers of other kinds of load are left out."""
        data: Mapping[str, Any] = self.data if untouched is None else untouched
        found: dict[str, Any] = {}
        kind = data.get("/spec/load/kind", "search")
        numbers = {"rate", "to_rate", "step", "users", "duration_s"}
        for name in self.fields:
            if not name.startswith("/spec/"):
                continue
            part, _, field = name.removeprefix("/spec/").partition("/")
            if part == "load" and field in numbers and field not in OF_KIND.get(kind, ()):
                continue
            value = _value(name, self.fields[name], str(data.get(name, "")).strip())
            if value is not None:
                found.setdefault(part, {})[field] = value
        return found


def _target(actor: Actor, stored: CapacityTest | None, chosen: str) -> dict[str, forms.Field]:
    """The pools to choose from, and of the chosen one (else the first) its regions and the names that lead there."""
    own = pools(actor).select_related(None).select_related("account").prefetch_related(None).exclude(protocol="tcp")
    if not actor.is_operator:
        own = own.filter(account=actor.account)
    some = list(own[: CHOICES_SHOWN + 1])
    pool = pool_named(actor, chosen, stored.account if stored else actor.account)
    if pool is None and len(some) <= CHOICES_SHOWN:
        pool = next(iter(some), None)
    hosts = hostnames_to_load(actor.account, pool, most=CHOICES_SHOWN + 1)
    names = [(name, name) for name in hosts]
    if stored and stored.hostname not in hosts:
        names.append((stored.hostname, f"{stored.hostname} (load tests not allowed now)"))
    widgets = {
        "pool": _choice(
            [(reference(each, actor.account.pk), f"{each.account.name}/{each.name}") for each in some], offers("pools")
        ),
        "region": forms.Select(choices=_regions(pool)),
        "hostname": _choice(names, offers("hostnames-to-load") | {"hx-include": "[name='/spec/target/pool']"}),
    }
    return {
        f"/spec/target/{field.name}": form_field(field, widgets.get(field.name) or forms.TextInput(attrs=PLAIN | MONO))
        for field in fields_of(TargetSpec)
    }


def _choice(names: list[tuple[str, str]], searched: dict[str, str]) -> forms.Widget:
    """All names to choose from; where there are more, a field that offers those that the server finds."""
    if len(names) <= CHOICES_SHOWN:
        return forms.Select(choices=names)
    return forms.TextInput(attrs=PLAIN | MONO | searched)


def _regions(pool: Pool | None) -> list[tuple[str, str]]:
    """Where the pool has servers."""
    if pool is None:
        return [("", "Choose the pool first")]
    names = Backend.objects.filter(pool=pool).values_list("region__name", flat=True).order_by("region__name")
    return [(name, name) for name in names]


def _parts() -> dict[str, forms.Field]:
    """Everything but the target; a number of the chosen kind of load must be there, but for the rate."""
    found = plain_fields(LoadSpec, "/spec/load") | plain_fields(ObjectiveSpec, "/spec/objective")
    found |= plain_fields(GuardSpec, "/spec/guards") | plain_fields(PolicySpec, "/spec/policy")
    found["/spec/load/kind"] = form_field(field_at(LoadSpec, "kind"), forms.RadioSelect(choices=list(KINDS.items())))
    for name, field in found.items():
        field.required = isinstance(field, Text) and name != "/spec/load/rate"
    return found


def _value(name: str, field: forms.Field, text: str) -> Any:
    """What a field stands for in the document; None where it was left empty."""
    if isinstance(field, forms.BooleanField):
        return text in ("on", "true", "1")
    if not text:
        return "" if name.endswith("/server") else None
    if isinstance(field, Text) and field.type == "string":
        return text
    number = _as_number(text)
    if name in SHARES and not isinstance(number, str):
        return round(number / 100, 6)
    return number


def _as_number(text: str) -> float | int | str:
    """The number, or the text where it is none."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return text
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 # how NaN shows itself
        return text
    return int(value) if value.is_integer() else value


def texts_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What the form shows of a document."""
    found: dict[str, Any] = {}
    for part, fields in spec.items():
        for field, value in fields.items():
            name = f"/spec/{part}/{field}"
            if isinstance(value, bool | str):
                found[name] = value
            elif name in SHARES:
                found[name] = f"{100 * value:.12g}"
            else:
                found[name] = f"{value:.15g}" if value or field == "headroom" else ""
    return found


def blank(start: Mapping[str, str]) -> dict[str, Any]:
    """What a new form begins with; `pool` and `region` of the query choose them."""
    spec: dict[str, Any] = {
        "target": {
            "path": "/",
            "pool": (start.get("pool") or start.get("/spec/target/pool", ""))[:127],
            "region": start.get("region", "")[:63],
        },
        "load": write(LoadSpec, LoadSpec(arrivals="constant")),
        "objective": write(ObjectiveSpec, ObjectiveSpec()),
        "guards": write(GuardSpec, GuardSpec()),
        "policy": write(PolicySpec, PolicySpec()),
    }
    return texts_of(spec)
