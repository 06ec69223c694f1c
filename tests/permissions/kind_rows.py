"""The table, the objects that apply takes: all of them are listed, made, read, replaced, changed and deleted alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.permissions.rows import Codes, Row, codes
from tests.permissions.schedule_api_rows import SCHEDULE

ANY = {"If-Match": "*"}
LIST = codes(200, 200, 200)


@dataclass(frozen=True, slots=True)
class Kind:
    """One noun: which object of the environment is asked for, how it is named, and the answers.

    `spec` is what a new one is made of.
    """

    noun: str
    holds: str
    named: dict[str, str]
    spec: dict[str, Any]
    create: Codes
    read: Codes
    write: Codes
    put_by_name: Codes
    delete: Codes


# What customers own, and operators change as well.
OWNED = {
    "create": codes("403 201 201", "403 201 201", "403 201 201"),
    "read": codes(404, 200, 200),
    "write": codes(404, "403 200 200", "403 200 200"),
    # A PUT by name makes what is not there, and nobody makes anything in another account.
    "put_by_name": codes("403 422 422", "403 200 200", "403 200 200"),
    "delete": codes(404, "403 204 204", "403 204 204"),
}
# What names a pool of the own account as its own: nobody else has such a pool.
OF_POOL = OWNED | {"create": codes("403 422 422", "403 201 201", "403 422 422")}
# What stands in a zone that is shared with the own account alone.
OF_ZONE = OWNED | {"create": codes("403 422 422", "403 201 201", "403 201 201")}
# What operators own and nobody else sees.
HIDDEN = {
    "create": codes(403, 403, "403 201 201"),
    "read": codes(404, 404, 200),
    "write": codes(404, 404, "403 200 200"),
    "put_by_name": codes(403, 403, "403 200 200"),
    "delete": codes(404, 404, "403 204 204"),
}
# What operators own and everybody names in routes and pools.
SHARED = HIDDEN | {
    "read": codes(200, 200, 200),
    "write": codes(403, 403, "403 200 200"),
    "delete": codes(403, 403, "403 409 409"),
}
# What says something about a customer's account: theirs to read.
ABOUT = HIDDEN | {
    "read": codes(404, 200, 200),
    "write": codes(404, 403, "403 200 200"),
    "delete": codes(404, 403, "403 204 204"),
}
IN_USE = codes(404, 404, "403 409 409")
KEPT = codes(404, 403, "403 409 409")
OURS = codes(403, 403, "403 409 409")
FRONT = {"account": "operator", "name": "front"}
LISTENERS = [{"name": "more", "protocol": "http", "port": 8099}]
ROUTE = {
    "load_balancer": "front",
    "hostname": "new.example",
    "path": "/",
    "action": {"fixed_response": {"status": 200, "body": "x"}},
}
NETWORK_LIST = {"entries": [{"network": "192.0.2.0/24"}]}
POLICY = {"rules": {"security_headers": {"no_sniff": True}}}
ALERT_CHANNEL = {"type": "webhook", "url": "https://hooks.example/in", "secret": "whsec_" + "QUJD" * 10}
POOL = {"protocol": "http", "backends": []}
CAPACITY_TEST = {"target": {"pool": "shop", "region": "us-central1", "hostname": "shop.acme.example"}}
ACCOUNT = {"cloud": "aws"}
AUTHORITY = {"directory_url": "https://ca.example/directory"}
STACK = {"cloud_account": "prod", "cloud_region": "eu-west-1", "region": "us-central1"}
ZONE = {"domain": "new.example.net", "driver": "memory"}
RECORD = {"zone": "operator/shared", "label": "new", "type": "A", "values": ["192.0.2.1"]}
NODE = {"fleet": "us-central1", "url": "https://192.0.2.9:9440", "address": "192.0.2.9"}


def acme(name: str) -> dict[str, str]:
    """The name of an object of the own account."""
    return {"account": "acme", "name": name}


KINDS = (
    Kind("routes", "route", acme("shop"), ROUTE, **OWNED),
    Kind("network-lists", "networklist", acme("offices"), NETWORK_LIST, **OWNED),
    Kind("policies", "policy", acme("web"), POLICY, **OWNED),
    Kind("alert-rules", "alertrule", acme("basket"), {"watches": "pool_down"}, **OWNED),
    Kind("alert-channels", "alertchannel", acme("team"), ALERT_CHANNEL, **OWNED),
    Kind("status-pages", "statuspage", acme("acme-status"), {"title": "New"}, **OWNED),
    Kind("pools", "spare", acme("spare"), POOL, **OWNED),
    Kind("schedules", "schedule", acme("nightly"), SCHEDULE, **OWNED),
    Kind("capacity-tests", "capacitytest", acme("measure"), CAPACITY_TEST, **OF_POOL),
    Kind("certificates", "certificate", acme("shop"), {}, **(OWNED | {"create": codes(422, 422, 422)})),
    Kind("certificate-authorities", "certificateauthority", {"name": "ca"}, AUTHORITY, **HIDDEN),
    Kind("accounts", "account", {"name": "acme"}, {"title": "New", "kind": "customer"}, **(ABOUT | {"delete": KEPT})),
    Kind("grants", "grant", {"name": "of-acme"}, {"account": "acme", "hostname": "more.example"}, **ABOUT),
    Kind("regions", "region", {"name": "us-central1"}, {"title": "New"}, **SHARED),
    Kind(
        "load-balancers", "loadbalancer", FRONT, {"fleets": [], "listeners": LISTENERS}, **(SHARED | {"delete": OURS})
    ),
    Kind("fleets", "fleet", {"name": "us-central1"}, {"region": "us-central1"}, **(HIDDEN | {"delete": IN_USE})),
    Kind("nodes", "node", {"name": "us-1"}, NODE, **HIDDEN),
    Kind("cloud-accounts", "cloudaccount", {"name": "prod"}, ACCOUNT, **(HIDDEN | {"delete": IN_USE})),
    Kind("stacks", "stack", {"name": "aws-eu"}, STACK, **HIDDEN),
    Kind("address-pools", "addresspool", {"name": "addresses"}, {"blocks": ["198.51.100.0/28"]}, **HIDDEN),
    Kind("zones", "zone", {"account": "operator", "name": "shared"}, ZONE, **(ABOUT | {"delete": KEPT})),
    Kind("records", "record", acme("www"), RECORD, **OF_ZONE),
    Kind("static-ips", "staticip", {"name": "front"}, {"region": "us-central1", "address": "192.0.2.8"}, **HIDDEN),
)


def rows_of(kind: Kind) -> Iterator[Row]:
    """Every URL of a kind with each of its methods."""
    yield Row(f"api:{kind.noun}-list", "GET", LIST, holds="all")
    yield Row(f"api:{kind.noun}-list", "POST", kind.create, body={"name": "new", "spec": kind.spec})
    holds = kind.holds if kind.read.other[0] == 404 else ""
    put: dict[str, Any] = {"spec": f"spec of {kind.holds}"}
    patch: dict[str, Any] = {"spec": {}}
    for url, path, put_codes in (
        (f"api:{kind.noun}-detail", {"pk": f"${kind.holds}"}, kind.write),
        (f"api:{kind.noun}-named", kind.named, kind.put_by_name),
    ):
        yield Row(url, "GET", kind.read, path, holds)
        yield Row(url, "PUT", put_codes, path, holds, put, headers=ANY)
        yield Row(url, "PATCH", kind.write, path, holds, patch, headers=ANY)
        yield Row(url, "DELETE", kind.delete, path, holds, headers=ANY)


# One view answers all of them: it is asked everything for pools, and each other kind whether it finds, replaces and
# deletes by id, and finds and makes by name.
ANSWERED_ALIKE = {
    f"{method} api:{kind.noun}-{end}"
    for kind in KINDS
    for method, end in (("PATCH", "detail"), ("PATCH", "named"), ("DELETE", "named"))
    if kind.noun != "pools"
}
OF_KINDS: tuple[Row, ...] = tuple(row for kind in KINDS for row in rows_of(kind))
