"""Every way in, as a function that takes a field with a value and says what came of it.

All are the product's own entrypoints: the API and the pages through every middleware, `apply` as a whole document,
and the command that operators import with.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Hostname
from apps.schedules.models import Trigger
from tests.hostile.corpus import CORPUS, SHARP
from tests.hostile.fields import FIELDS, Field
from tests.hostile.orders import ORDERS
from tests.hostile.pointers import with_value

MISSING = object()
PLATFORM = {
    "Account": "accounts", "Region": "regions", "Fleet": "fleets", "Node": "nodes", "StaticIP": "static-ips",
    "Grant": "grants", "CertificateAuthority": "certificate-authorities",
    "CloudAccount": "cloud-accounts", "Stack": "stacks", "AddressPool": "address-pools",
}  # fmt: skip
NOUNS = PLATFORM | {
    "Certificate": "certificates", "Pool": "pools", "LoadBalancer": "load-balancers", "Route": "routes",
    "NetworkList": "network-lists", "Policy": "policies",
    "Zone": "zones", "Record": "records", "Schedule": "schedules", "CapacityTest": "capacity-tests",
    "AlertRule": "alert-rules", "AlertChannel": "alert-channels", "StatusPage": "status-pages",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """What a entrypoint said: the status, the text, whether it names a field, and how long it worked.

    `ms` is the processor's time of the whole request, which other work on the machine does not lengthen.
    """

    status: int
    text: str
    named: bool
    ms: float


Entrypoint = Callable[[Field, Any], Told]


def api(client: Client) -> Entrypoint:
    """POST of one object as JSON."""

    def send(field: Field, value: Any) -> Told:
        body = {"name": "hostile", "spec": field.document(value)}
        return _told(lambda: client.post(f"/api/v1/{NOUNS[field.kind]}", json.dumps(body), "application/json"))

    return send


def patch(client: Client) -> Entrypoint:
    """PATCH of the object that is there, with the one field that changes it."""
    there = {
        "Account": "accounts/acme", "Region": "regions/us-central1", "Fleet": "fleets/us-central1",
        "Node": "nodes/us-1",
        "Pool": "pools/acme/shop", "LoadBalancer": "load-balancers/operator/front", "Route": "routes/acme/shop",
    }  # fmt: skip

    def send(field: Field, value: Any) -> Told:
        first = field.pointer.strip("/").split("/")[0]
        body = json.dumps({"spec": {first: field.document(value)[first]}})
        url = f"/api/v1/{there[field.kind]}"
        headers = {"If-Match": "*"}
        return _told(lambda: client.patch(url, body, "application/merge-patch+json", headers=headers))

    return send


def apply(client: Client) -> Entrypoint:
    """The whole document, as YAML where YAML can say it, else as JSON."""

    def send(field: Field, value: Any) -> Told:
        document = {"objects": [{"kind": field.kind, "name": "hostile", "spec": field.document(value)}]}
        try:
            body, kind = yaml.safe_dump(document, allow_unicode=False), "application/yaml"
            body.encode()
        except (yaml.YAMLError, UnicodeEncodeError):
            body, kind = json.dumps(document), "application/json"
        return _told(lambda: client.put("/api/v1/apply", body, kind))

    return send


def command(folder: Path) -> Entrypoint:
    """`manage.py apply FILE`, which says what is wrong and leaves with 1."""

    def send(field: Field, value: Any) -> Told:
        document = {"objects": [{"kind": field.kind, "name": "hostile", "spec": field.document(value)}]}
        path = folder / "hostile.json"
        path.write_text(json.dumps(document))
        began = time.thread_time()
        try:
            call_command("apply", str(path), stdout=io.StringIO(), stderr=io.StringIO())
        except CommandError as error:
            said = str(error)
            return Told(422, said, any(word in said for word in ("/", "line", "body", "JSON")), _since(began))
        return Told(200, "applied", named=False, ms=_since(began))

    return send


def page(client: Client) -> Entrypoint:
    """The form of a new pool or route, filled in as the example says, with the value where a person would type it."""
    forms = {"pool": ("web:pool-new", pool_form), "route": ("web:route-new", route_form)}
    forms |= dict.fromkeys(("redirect", "fixed_response"), ("web:route-new", route_form))

    def send(field: Field, value: Any) -> Told:
        url, fill = forms[field.example]
        data = fill(field, value)
        return _told(lambda: client.post(reverse(url), data), form=True)

    return send


def pool_form(field: Field, value: Any) -> dict[str, Any]:
    """A form of a new pool; fields are named by their pointers."""
    data = {"/name": "hostile", "/account": "acme", "/spec/health_check": "on", "reason": ""}
    spec = dict(field.document(value))
    overflow, check = spec.pop("overflow"), spec.pop("health_check")
    (backend,) = spec.pop("backends")
    spec.pop("tags", None)
    data |= {f"/spec/{name}": typed(entry) for name, entry in spec.items()}
    data |= {
        "/spec/overflow/when_full": typed(overflow["when_full"]),
        "/spec/overflow/order": typed(overflow["order"][0]),
    }
    data |= {f"/spec/health_check/{name}": typed(entry) for name, entry in check.items()}
    # Regions stand in the order of their names: europe-west1, us-central1.
    pointer = "/spec/backends/1"
    data |= {f"{pointer}/limit/{name}": typed(entry) for name, entry in backend["limit"].items()}
    data[f"{pointer}/capacity_scaler"] = typed(backend["capacity_scaler"])
    data |= {f"{pointer}/servers/0/{name}": typed(entry) for name, entry in backend["servers"][0].items()}
    return data


def route_form(field: Field, value: Any) -> dict[str, Any]:
    """A form of a new route."""
    spec = field.document(value)
    action, part = next(iter(spec["action"].items()))
    data = {name: typed(spec[name]) for name in ("load_balancer", "hostname", "path", "path_kind", "scheme")}
    data |= {"name": "hostile", "account": "acme", "action": action, "methods": typed(spec["methods"][0])}
    data |= {"prefix_rewrite": typed(spec["prefix_rewrite"]), "mirror": typed(spec["mirror"]), "reason": ""}
    data |= {
        "pools-TOTAL_FORMS": "1",
        "pools-INITIAL_FORMS": "0",
    }
    for rows in ("headers", "query", "cookies"):
        data |= {f"{rows}-TOTAL_FORMS": "1", f"{rows}-INITIAL_FORMS": "0"}
        data |= {f"{rows}-0-{name}": typed(entry) for name, entry in spec[rows][0].items()}
    data["client_networks"] = typed(spec["client_networks"][0])
    data["policies"] = typed(spec["policies"][0])
    if action == "pools":
        data |= {f"pools-0-{name}": typed(entry) for name, entry in part[0].items()}
    prefix = {"redirect": "redirect", "fixed_response": "fixed"}.get(action)
    if prefix:
        data |= {f"{prefix}_{name}": typed(entry) for name, entry in part.items()}
    return data


def typed(value: Any) -> str:
    """A value as a browser sends it; what no browser can send is sent as it would be written."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else ""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode()


def _told(ask: Callable[[], Any], *, form: bool = False) -> Told:
    began = time.thread_time()
    answer = ask()
    spent = _since(began)
    text = answer.content.decode("utf-8", "replace")
    if form:
        return Told(answer.status_code, text[:4000], 'class="error"' in text or "form-errors" in text, spent)
    problem = answer.headers["Content-Type"] == "application/problem+json"
    field_errors = answer.json()["errors"] if problem else []
    said = answer.json()["detail"] if problem else ""
    # A body that cannot be read at all has no fields that could be named; it says where or what instead.
    named = answer.status_code == 400 or (
        bool(field_errors) and all(each["pointer"] and each["detail"] for each in field_errors)
    )
    return Told(answer.status_code, text[:2000], problem and named and bool(said), spent)


def _since(began: float) -> float:
    return 1000 * (time.thread_time() - began)


def tour(
    fields: list[Field], *, whole: bool = False, classes: Iterable[str] = tuple(CORPUS)
) -> Iterator[tuple[Field, Any]]:
    """Every value once, each in the next field of which it is no value; `whole` also every field with every class."""
    for values in (CORPUS[name] for name in classes):
        left, turn = list(values), 0
        while left and turn < len(fields) * (1 + len(values)):
            field = fields[turn % len(fields)]
            turn += 1
            value = next((each for each in left if not field.legal(each)), MISSING)
            if value is not MISSING:
                left = [each for each in left if each is not value]
                yield field, value
        for field in fields[turn:] if whole else ():
            yield from ((field, value) for value in [each for each in values if not field.legal(each)][turn % 7 :][:1])


def dozen(fields: list[Field]) -> Iterator[tuple[Field, Any]]:
    """Every sharp value once, each in another field of which it is no value."""
    step = max(len(fields) // len(SHARP), 1)
    for turn, value in enumerate(SHARP):
        yield next((field, value) for field in [*fields[turn * step :], *fields] if not field.legal(value))


def each_field(fields: list[Field]) -> Iterator[tuple[Field, Any]]:
    """Every field once, each with another sharp value that is none of it."""
    for turn, field in enumerate(fields):
        at = turn % len(SHARP)
        yield next((field, value) for value in [*SHARP[at:], *SHARP] if not field.legal(value))


def every_sharp(fields: list[Field]) -> Iterator[tuple[Field, Any]]:
    """Every field with every sharp value that is none of it."""
    yield from ((field, value) for field in fields for value in SHARP if not field.legal(value))


def fields_of(*examples: str) -> list[Field]:
    """Fields of these examples, or of all."""
    return [field for field in FIELDS if not examples or field.example in examples]


def order(client: Client) -> Entrypoint:
    """A body that is no document, with one field replaced, sent to its own URL."""

    def send(field: Field, value: Any) -> Told:
        method, url, body = ORDERS[field.kind]
        trigger = Trigger.objects.first()
        url = url.format(hostname=Hostname.objects.earliest("pk").pk, trigger=trigger.pk if trigger else 0)
        sent = json.dumps(with_value(body, field.pointer, value))
        headers = {"If-Match": "*"}
        return _told(lambda: client.generic(method, f"/api/v1/{url}", sent, "application/json", headers=headers))

    return send
