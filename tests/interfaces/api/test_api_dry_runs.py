"""A dry run tells of stacks and zones, a plan keeps it, and customers read their part of it."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.definitions.services import save_object
from tests.apps.clouds_env import RECORD, give_real_addresses, make_clouds, spec_of
from tests.interfaces.api.test_api_objects import Api, api, house

__all__ = ["api", "house"]
FRONT = {"stacks": ["aws-eu"], "listeners": [{"name": "web", "protocol": "http", "port": 80}]}


@pytest.fixture
def objects(tutorial_env: Actor, acme: Actor) -> list[dict[str, Any]]:
    """A route of acme into a load balancer at AWS, and a record in the zone that is shared with it."""
    make_clouds(tutorial_env)
    give_real_addresses(acme)
    save_object(actor=tutorial_env, kind="LoadBalancer", name="cloud", spec=FRONT)
    route = spec_of(acme, "shop") | {"assertions": [], "load_balancer": "cloud"}
    return [{"kind": "Route", "name": "cart", "spec": route}, {"kind": "Record", "name": "www", "spec": RECORD}]


def test_a_plan_tells_of_stacks_and_zones_and_is_kept_with_it(house: Api, objects: list[dict[str, Any]]) -> None:
    owned = [each | {"account": "acme"} for each in objects]
    plan = house("PUT", "apply?dry_run=plan", {"objects": owned}).json()
    (stack,), (zone,) = plan["stacks"], plan["zones"]
    assert (stack["stack"], stack["target"], stack["decision"]) == ("aws-eu", "aws", "person")
    assert "route acme/cart: added (aws_lb_listener_rule)" in stack["changes"]
    assert stack["to_add"] > 1
    after = {"ttl": 300, "values": ["192.0.2.80"]}
    assert zone["changes"] == [
        {"action": "create", "name": "www.shared.example.net", "type": "A", "before": None, "after": after, "note": ""}
    ]
    kept = house("GET", f"plans/{plan['plan_id']}").json()
    assert (kept["stacks"], kept["zones"]) == (plan["stacks"], plan["zones"])
    done = house("POST", f"plans/{plan['plan_id']}/apply").json()
    assert (done["stored"], done["stacks"], done["zones"]) == (True, [], [])


def test_a_customers_plan_tells_what_the_cloud_makes_of_its_own_and_names_no_stack(
    api: Api, objects: list[dict[str, Any]]
) -> None:
    answer = api("PUT", "apply?dry_run=plan", {"objects": objects})
    (stack,), (zone,) = answer.json()["stacks"], answer.json()["zones"]
    told = {key: stack[key] for key in ("stack", "to_add", "to_change", "to_delete", "decision", "changes", "refused")}
    assert told == dict.fromkeys(("stack", "to_add", "to_change", "to_delete", "decision")) | {
        "changes": [],
        "refused": [],
    }
    assert stack["warnings"]
    assert all(warning.startswith("acme/") for warning in stack["warnings"])
    assert [change["name"] for change in zone["changes"]] == ["www.shared.example.net"]
    assert "aws-eu" not in answer.content.decode()
