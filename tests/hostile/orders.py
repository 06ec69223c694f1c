"""The bodies that are no documents: claims, invitations, tokens, webhooks, limits, distances; field by field."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from tests.hostile.fields import RULES as FIELD_RULES
from tests.hostile.fields import Field
from tests.hostile.legal import NAME, Legal, boolean, instant, is_host, maybe, one_of, public_url, real, text, whole
from tests.hostile.pointers import Document, leaves

ORDERS: dict[str, tuple[str, str, Document]] = {
    "hostname": ("POST", "hostnames", {"name": "new.acme.example", "account": "acme"}),
    "invitation": (
        "POST",
        "invitations",
        {"email": "ann@example.org", "role": "viewer", "account": "acme", "mail": False},
    ),
    "token": (
        "POST",
        "tokens",
        {
            "name": "ci", "role": "viewer", "account": "acme", "scopes": ["routes:read"], "networks": ["192.0.2.0/24"],
            "expires_in_days": 30,
        },
    ),
    "webhook": (
        "POST",
        "webhooks",
        {
            "name": "hooks", "account": "acme",
            "spec": {"url": "https://hooks.example.org/x", "event_types": ["route.created"], "enabled": True},
        },
    ),
    "limit": (
        "PATCH",
        "pools/acme/shop/limits/us-central1",
        {"kind": "rate", "value": 5, "scope": "backend", "capacity_scaler": 0.5, "measured_by": "run-1"},
    ),
    "preview": (
        "POST",
        "schedules/preview",
        {
            "when": {"cron": "0 30 2 * * *"}, "zone": "Europe/Berlin", "starts_at": "2027-01-31T00:00:00Z",
            "ends_at": "2028-01-31T00:00:00Z",
        },
    ),
    "move": ("POST", "static-ips/front/move", {"load_balancer": "front", "listeners": ["http"]}),
    "adopt": (
        "POST",
        "cloud-accounts/prod/adopt",
        {
            "region": "eu-central-1", "id": "arn:aws:x:loadbalancer/app/old/1", "name": "adopted", "account": "acme",
            "stack": "aws-eu", "regions": {"eu-central-1": "europe-west1"}, "certificates": {"old-shop": "shop"},
            "addresses": {"192.0.2.1": "front"},
        },
    ),
    "import": (
        "POST",
        "import",
        {
            "files": {"haproxy.cfg": "defaults\n mode http\n"}, "file": "haproxy.cfg", "account": "acme",
            "fleets": ["us-central1"], "region": "us-central1", "prefix": "shop-",
            "servers": {"127.0.0.1:8080": "10.0.0.1:8080"}, "certificates": {"site.pem": "shop"},
            "addresses": {"192.0.2.1": "front"}, "passwords": {"alice": "correct-horse"}, "environment": {"SITE": "eu"},
        },
    ),
    "latency": ("PUT", "regions/us-central1/latency/europe-west1", {"ms": 98.5}),
    "rotation": ("POST", "triggers/{trigger}/rotate", {"grace_s": 3600}),
    "verification": ("POST", "hostnames/{hostname}/verification", {"reason": "Contract 4711"}),
}  # fmt: skip


def is_email(value: Any) -> bool:
    """An address as people write it: one @, a local part without blanks, a domain with a dot."""
    form = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+"
    return isinstance(value, str) and len(value) <= 254 and bool(re.fullmatch(form, value, re.ASCII))


def is_network(value: Any) -> bool:
    """A network or an address."""
    try:
        return isinstance(value, str) and bool(ipaddress.ip_network(value, strict=False)) and value.isascii()
    except ValueError:
        return False


def configuration(value: Any) -> bool:
    """The text of a file that could be a haproxy.cfg."""
    return isinstance(value, str) and bool(value.splitlines()) and "\0" not in value and is_utf8(value)


def is_utf8(value: str) -> bool:
    """No half of a surrogate pair is in it."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def word(value: Any) -> bool:
    """Printable text of at most 1024 characters."""
    return isinstance(value, str) and 0 < len(value) <= 1024 and value.isprintable()


def reason(value: Any) -> bool:
    """Printable text of at most 400 characters that is not blank."""
    return isinstance(value, str) and 0 < len(value) <= 400 and value.isprintable() and bool(value.strip())


RULES: dict[str, Legal] = {
    "hostname/name": is_host, "account": maybe(NAME), "email": is_email, "mail": boolean,
    "role": one_of("admin", "operator", "owner", "editor", "viewer"), "name": NAME,
    "scopes": text(80, r"(\*|[a-z-]+):(read|write)"), "networks": is_network, "expires_in_days": whole(1, 365),
    "url": public_url, "event_types": text(80, r"\*|[a-z_]+\.(\*|[a-z_]+)"), "enabled": boolean,
    "kind": one_of("none", "rate", "connections"), "value": whole(1, 10_000_000), "scope": one_of("backend", "server"),
    "cron": FIELD_RULES["when/cron"], "zone": FIELD_RULES["zone"], "starts_at": instant, "ends_at": instant,
    "capacity_scaler": real(0, 1), "measured_by": maybe(NAME), "ms": real(0, 60_000), "reason": reason,
    "load_balancer": NAME, "listeners": NAME,
    "adopt/region": FIELD_RULES["cloud_region"], "adopt/id": text(2048, r"[A-Za-z0-9][A-Za-z0-9_+=,.@:/-]*"),
    "adopt/account": NAME, "stack": NAME, "eu-central-1": NAME, "old-shop": NAME, "192.0.2.1": NAME,
    "haproxy.cfg": configuration, "file": one_of("haproxy.cfg"), "import/account": NAME, "fleets": NAME,
    "import/region": NAME, "prefix": text(30, r"([a-z0-9][a-z0-9-]*)?"),
    "127.0.0.1:8080": word, "site.pem": NAME, "alice": word, "SITE": word,
    "grace_s": maybe(whole(0, 7 * 86_400)),
}  # fmt: skip


def rule_for(order: str, pointer: str) -> Legal:
    """The rule of a field, by its last word that is no position."""
    last = [part for part in pointer.split("/") if not part.isdecimal()][-1]
    return RULES.get(f"{order}/{last}") or RULES[last]


def fields_of_orders() -> list[Field]:
    """Every field of every order; `kind` is the name of the order."""
    return [
        Field(order, order, pointer, rule_for(order, pointer))
        for order, (_, _, body) in ORDERS.items()
        for pointer, _ in leaves(body)
    ]
