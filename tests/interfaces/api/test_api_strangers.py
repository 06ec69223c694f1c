"""What belongs to another account is named in vain: the answer is that of a name that nobody has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.accounts.models import Account
from apps.definitions.services import KINDS, save_object
from tests.conftest import actor_of, apply_tutorial
from tests.fixture_cache import CachedFixture
from tests.interfaces.api.test_api_objects import ROUTE, Api, assert_problem

THEIRS, NOBODYS = "theirs", "nobody"  # names of one length
POOL: dict[str, Any] = {"backends": []}
TEST = {"target": {"pool": f"globex/{THEIRS}", "region": "europe-west1", "hostname": "shop.acme.example"}}
# An object of acme that names what globex or the operator has, by its kind.
NAMING: dict[str, tuple[str, dict[str, Any]]] = {
    "a pool": ("routes", ROUTE | {"action": {"pools": [{"pool": f"globex/{THEIRS}"}]}}),
    "a pool of the operator": ("routes", ROUTE | {"action": {"pools": [{"pool": f"operator/{THEIRS}"}]}}),
    "a mirror": ("routes", ROUTE | {"mirror": f"globex/{THEIRS}"}),
    "a policy": ("routes", ROUTE | {"policies": [f"globex/{THEIRS}"]}),
    "a list": ("routes", ROUTE | {"rules": {"access": {"allow": [THEIRS]}}}),
    "a list of a policy": ("policies", {"rules": {"access": {"deny": [THEIRS]}}}),
    "a pool of an assertion": (
        "routes",
        ROUTE | {"assertions": [{"path": "/", "expect": {"pool": f"globex/{THEIRS}"}}]},
    ),
    "a certificate": (
        "pools",
        POOL | {"server_tls": {"verify": "none", "client_certificate": THEIRS}},
    ),
    "a pool of a test": ("capacity-tests", TEST),
    "a test of a schedule": (
        "schedules",
        {"when": {"cron": "0 3 * * *"}, "target": {"capacity_test": {"name": THEIRS}}},
    ),
    "a pool of a scheduled change": (
        "schedules",
        {
            "when": {"cron": "0 3 * * *"},
            "target": {
                "change": {"object": {"kind": "Route", "name": "new", "spec": ROUTE | {"mirror": f"globex/{THEIRS}"}}}
            },
        },
    ),
    "an account of a scheduled change": (
        "schedules",
        {
            "when": {"cron": "0 3 * * *"},
            "target": {"change": {"object": {"kind": "Pool", "name": "new", "account": "globex", "spec": POOL}}},
        },
    ),
    "a zone": ("records", {"zone": f"operator/{THEIRS}", "label": "www", "type": "A", "values": ["192.0.2.1"]}),
    "a static IP": ("records", {"zone": "operator/shared", "label": "www", "type": "A", "static_ip": THEIRS}),
    "a route of a status page": (
        "status-pages",
        {"title": "Status", "components": [{"name": "Shop", "routes": [THEIRS]}]},
    ),
}
KINDS_OF = {entry.noun: kind for kind, entry in KINDS.items()}


def _build() -> None:
    """Each of it, under one name."""
    apply_tutorial()
    operator, globex = actor_of("operator", Account.Kind.OPERATOR), actor_of("globex", Account.Kind.CUSTOMER)
    for actor in (globex, operator):
        save_object(actor=actor, kind="Pool", name=THEIRS, spec=POOL)
        save_object(actor=actor, kind="Policy", name=THEIRS, spec={"rules": {"access": {"status": 404}}})
        save_object(actor=actor, kind="NetworkList", name=THEIRS, spec={"entries": []})
    address = {"kind": "vip", "address": "198.51.100.7", "region": "europe-west1", "owner": "globex"}
    save_object(actor=operator, kind="StaticIP", name=THEIRS, spec=address)
    save_object(actor=operator, kind="Zone", name=THEIRS, spec={"driver": "memory", "domain": "theirs.example"})


_STRANGERS = CachedFixture(_build)


@pytest.mark.parametrize("case", NAMING)
def test_what_others_have_is_as_if_nobody_had_it(db: None, case: str) -> None:
    _STRANGERS.put()
    api = Api(actor_of("acme", Account.Kind.CUSTOMER))
    noun, spec = NAMING[case]
    nobody = json.loads(json.dumps(spec).replace(THEIRS, NOBODYS).replace('"globex"', '"nobody"'))

    def errors(wanted: dict[str, Any]) -> list[Any]:
        """Sent alone, and as a document that is applied and planned."""
        document = {"objects": [{"kind": KINDS_OF[noun], "name": "new", "spec": wanted}]}
        sent = [
            ("POST", noun, {"name": "new", "spec": wanted}),
            ("PUT", "apply", document),
            ("PUT", "apply?dry_run=true", document),
        ]
        return [assert_problem(api(*each), 422)["errors"] for each in sent]

    theirs = errors(spec)
    assert all(theirs)
    assert json.loads(json.dumps(theirs).replace(THEIRS, NOBODYS)) == errors(nobody)
