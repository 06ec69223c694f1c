"""The form of a capacity test: its fields by heading, and the document that they make.

Shares are typed in per cent. What is no number goes on as it was typed, so that the document's own sentence says what
is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.accounts.selectors import accounts
from apps.definitions.models import Backend, CapacityTest, Pool, RoutePool
from apps.definitions.reading.capacity_tests import testable_hostnames
from apps.definitions.selectors import describe, pools
from apps.web.capacity.words import KINDS

POOLS_SHOWN = 500
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
ARRIVALS = (("constant", "Evenly spaced"), ("poisson", "Random (Poisson)"))
SERVER_HELP = (
    "Server name. Leave empty to send the load through the load balancer. A customer's run "
    "against a public server needs an operator's approval."
)
APPLY = (("by_hand", "Suggest a limit; a person sets it"), ("automatic", "Set the limit automatically"))
GROUPS = {
    "Target": ("/name", "/account", "/spec/target/pool", "/spec/target/region", "/spec/target/hostname",
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


def _typed(label: str, hint: str = "", *, required: bool = False, mono: bool = False, **attrs: str) -> forms.CharField:
    widget = forms.TextInput(attrs=PLAIN | (MONO if mono else {}) | attrs)
    return forms.CharField(label=label, help_text=hint, required=required, widget=widget)


def _number(label: str, unit: str, hint: str = "", *, optional: bool = False) -> forms.CharField:
    return _typed(f"{label}, {unit}" if unit else label, hint, required=not optional, inputmode="decimal")


def _choice(label: str, choices: Iterable[tuple[str, str]], hint: str = "") -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=list(choices), help_text=hint)


class CapacityTestForm(forms.Form):
    """A test as people type it; whether it makes sense is said by the document and by what is stored."""

    use_required_attribute = False

    def __init__(self, actor: Actor, stored: CapacityTest | None, data: QueryDict | None, start: Mapping[str, str]):
        super().__init__(data, initial=texts_of(describe(stored)) if stored else blank(start))
        self.stored = stored
        if stored is None:
            self.fields["/name"] = _typed("Name", "Lowercase letters, digits and hyphens.", required=True)
            if actor.is_operator:
                who = [(each.name, f"{each.title} ({each.name})") for each in accounts(actor)]
                self.fields["/account"] = _choice("Account", who)
                self.initial.setdefault("/account", actor.account.name)
        pool = str(self.data.get("/spec/target/pool") or self.initial.get("/spec/target/pool") or "")
        self.fields |= _target(actor, stored, pool) | _load() | _objective() | _guards() | _policy()
        self.fields["reason"] = _typed("Reason", "Recorded in the audit log.", maxlength="400")

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields by heading."""
        return [(title, [self[name] for name in names if name in self.fields]) for title, names in GROUPS.items()]

    def spec(self) -> dict[str, Any]:
        """The document, as far as it was filled in; numbers of other kinds of load are left out."""
        data = self.data
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
    own = pools(actor).prefetch_related(None).exclude(protocol="tcp")
    if not actor.is_operator:
        own = own.filter(account=actor.account)
    owner = stored.account if stored else actor.account
    by_name = {_reference(pool, owner.pk): pool for pool in own[:POOLS_SHOWN]}
    names = [(name, f"{pool.account.name}/{pool.name}") for name, pool in by_name.items()]
    pool = by_name.get(chosen) or next(iter(by_name.values()), None)
    regions = list(Backend.objects.filter(pool=pool).values_list("region__name", flat=True).order_by("region__name"))
    hosts = [(name, name) for name in _leading_to(testable_hostnames(actor.account), pool)]
    if stored and stored.hostname not in dict(hosts):
        hosts.append((stored.hostname, f"{stored.hostname} (load tests not allowed now)"))
    return {
        "/spec/target/pool": _choice("Pool", names, "The servers of this pool receive the load."),
        "/spec/target/region": _choice("Region", [(name, name) for name in regions]),
        "/spec/target/hostname": _choice(
            "Hostname", hosts, "Only verified names that may be load-tested; a route of it has to lead to the pool."
        ),
        "/spec/target/path": _typed("Path", "Requested repeatedly. Choose a path that changes no data.", mono=True),
        "/spec/target/server": _typed("One server only", SERVER_HELP, mono=True),
    }


def _leading_to(names: list[str], pool: Pool | None) -> list[str]:
    """Those of the names that have a route to the pool; all of them where none has."""
    routed = set(RoutePool.objects.filter(pool=pool).values_list("route__hostname__name", flat=True)) if pool else set()
    return [name for name in names if name in routed] or names


def _reference(pool: Any, owner: int) -> str:
    return pool.name if pool.account_id == owner else f"{pool.account.name}/{pool.name}"


def _load() -> dict[str, forms.Field]:
    return {
        "/spec/load/kind": forms.ChoiceField(
            label="Kind of load", choices=list(KINDS.items()), widget=forms.RadioSelect
        ),
        "/spec/load/rate": _number(
            "Rate", "requests/s", "A search starts below this rate. Default: the current limit.", optional=True
        ),
        "/spec/load/to_rate": _number("Maximum rate", "requests/s"),
        "/spec/load/step": _number("Step size", "requests/s"),
        "/spec/load/users": _number(
            "Users",
            "",
            "Requests in flight at the same time. Each user sends the next request as soon as it has a response.",
        ),
        "/spec/load/duration_s": _number("Duration", "s", "For a ramp: the duration of each step."),
        "/spec/load/arrivals": _choice("Arrivals", ARRIVALS),
        "/spec/load/method": _choice("Method", [(word, word) for word in ("GET", "HEAD", "OPTIONS")]),
        "/spec/load/tls": forms.BooleanField(label="Over TLS", required=False),
        "/spec/load/keep_alive": forms.BooleanField(label="Keep connections open", required=False),
    }


def _objective() -> dict[str, forms.Field]:
    return {
        "/spec/objective/percentile": _choice("Percentile", [("95", "95th"), ("99", "99th")]),
        "/spec/objective/max_latency_ms": _number("Max. latency", "ms"),
        "/spec/objective/max_error_rate": _number("Max. error rate", "%"),
    }


def _guards() -> dict[str, forms.Field]:
    room = "Share of the region's current traffic that other regions must have capacity for."
    return {
        "/spec/guards/max_rate": _number("Maximum", "requests/s"),
        "/spec/guards/max_connections": _number("Maximum", "connections"),
        "/spec/guards/max_duration_s": _number("Max. duration", "s"),
        "/spec/guards/headroom": _number("Capacity elsewhere", "%", room),
    }


def _policy() -> dict[str, forms.Field]:
    return {
        "/spec/policy/apply": _choice("After the run", APPLY),
        "/spec/policy/margin": _number("Margin", "%", "Subtracted from the measured capacity."),
        "/spec/policy/max_change": _number(
            "Max. change", "%", "Largest automatic change, in percent of the current limit; at most 20."
        ),
    }


def _value(name: str, field: forms.Field, text: str) -> Any:
    """What a field stands for in the document; None where it was left empty."""
    if isinstance(field, forms.BooleanField):
        return text in ("on", "true", "1")
    if not text:
        return "" if name.endswith("/server") else None
    if isinstance(field, forms.ChoiceField) and not name.endswith("/percentile"):
        return text
    if name.startswith("/spec/target/"):
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
                found[name] = f"{100 * value:g}"
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
        "load": {"kind": "search", "rate": 0, "duration_s": 60, "arrivals": "constant", "method": "GET"},
        "objective": {"percentile": 95, "max_latency_ms": 600, "max_error_rate": 0.01},
        "guards": {"max_rate": 100, "max_connections": 200, "max_duration_s": 300, "headroom": 0.0},
        "policy": {"apply": "by_hand", "margin": 0.1, "max_change": 0.2},
    }
    spec["load"] |= {"tls": False, "keep_alive": True}
    return texts_of(spec)
