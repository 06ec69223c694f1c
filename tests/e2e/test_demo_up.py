"""The main job end to end: one command, two regions, a change that goes live, and every part killed once."""

from __future__ import annotations

import json
import signal
import stat
import time
from collections.abc import Iterator
from typing import Any

import pytest

from deploy.demo.ready import call
from deploy.demo.supervision import processes
from tests.e2e.demo import PATIENCE_S, RunningDemo, running_demo, until

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]  # a demo takes half a minute of both processors to come up


@pytest.fixture(scope="module")
def demo() -> Iterator[RunningDemo]:
    with running_demo() as running:
        yield running


def test_the_demo_is_ready_and_leaves_its_keys_to_the_owner_alone(demo: RunningDemo) -> None:
    assert call(f"{demo.config.console_url}/readyz")[0] == 200
    assert stat.S_IMODE(demo.config.dev_json.stat().st_mode) == 0o600
    assert {"url", "username", "password", "operator_token", "customer_token", "regions"} <= set(demo.keys)
    assert sorted(demo.keys["regions"]) == ["europe-west1", "us-central1"]


def test_every_node_balances_over_the_servers_of_its_own_region(demo: RunningDemo) -> None:
    for node in demo.topology.nodes():
        status, text = call(f"{demo.node_urls()[node.name]}/", headers={"Host": "shop.acme.example"})
        assert status == 200, text
        assert f"in {node.region} answered GET /" in text


def test_the_tutorials_redirect_and_rewrite_are_live(demo: RunningDemo) -> None:
    url = demo.node_urls()["eu-2"]
    assert call(f"{url}/a", headers={"Host": "www.acme.example"})[0] == 301
    assert "answered GET /orders" in call(f"{url}/v1/orders", headers={"Host": "api.globex.example"})[1]
    assert call(f"{url}/nothing", headers={"Host": "nobody.example"})[0] == 404


def test_a_route_put_by_api_is_live_on_all_four_nodes(demo: RunningDemo) -> None:
    started = time.monotonic()
    demo.put_answer("first")
    assert demo.everywhere("first") == []
    assert time.monotonic() - started < 60  # how fast it is, is measured by tests.bench.route_live


def operate(demo: RunningDemo, method: str, url: str, body: object = None) -> dict[str, Any]:
    """The answer to a call of the operator that succeeded."""
    headers = {"Authorization": f"Bearer {demo.keys['operator_token']}", "If-Match": "*"}
    headers["Content-Type"] = "application/json"
    content = "" if body is None else json.dumps(body)
    status, text = call(f"{demo.config.console_url}/api/v1/{url}", method, headers=headers, body=content)
    assert status in {200, 202}, text
    found: dict[str, Any] = json.loads(text)
    return found


WITHOUT_RELOAD = dict.fromkeys(("us-1", "us-2", "eu-1", "eu-2"), "runtime")


def last_steps(demo: RunningDemo) -> dict[str, str]:
    """How each node took the last change; repairs after other tests do not count."""
    found: dict[str, str] = {}
    for rollout in operate(demo, "GET", "rollouts?limit=20")["items"]:
        if rollout["kind"] == "change":
            found = {step["node"]: step["how"] for step in rollout["steps"]} | found
    return found


def served_in(demo: RunningDemo, node: str) -> str:
    """Which region answers a request for the shop that comes to the node."""
    status, text = call(f"{demo.node_urls()[node]}/", headers={"Host": "shop.acme.example"})
    assert status == 200, text
    return text.partition(" in ")[2].partition(" ")[0]


def test_a_limit_that_is_changed_by_one_call_reaches_every_node_without_a_reload(demo: RunningDemo) -> None:
    operate(demo, "PATCH", "pools/acme/shop/limits/us-central1?wait=20", {"value": 9})
    assert until(lambda: last_steps(demo) == WITHOUT_RELOAD), last_steps(demo)


def test_a_drained_region_serves_nobody_until_it_is_taken_back_and_no_client_notices(demo: RunningDemo) -> None:
    operate(demo, "POST", "regions/europe-west1/drain?wait=20")
    assert until(lambda: last_steps(demo) == WITHOUT_RELOAD), last_steps(demo)
    assert {served_in(demo, node) for node in ("eu-1", "eu-2") for _ in range(3)} == {"us-central1"}
    operate(demo, "POST", "regions/europe-west1/undrain?wait=20")
    assert until(lambda: served_in(demo, "eu-1") == "europe-west1")
    assert served_in(demo, "us-1") == "us-central1"


def test_starting_twice_says_so_and_fails(demo: RunningDemo) -> None:
    second = demo.command("up")
    output = second.communicate(timeout=PATIENCE_S)[0]
    assert second.returncode != 0
    assert "already runs" in output


def test_a_worker_killed_in_the_middle_of_a_push_leaves_no_node_behind(demo: RunningDemo) -> None:
    with demo.watched_traffic("us-1", "us-2", "eu-1", "eu-2") as failed:
        demo.put_answer("worker killed")
        demo.kill("celery")
        assert demo.everywhere("worker killed") == []
    assert failed == []


@pytest.mark.parametrize(
    "words", [("haproxy", "us-1"), ("apps.agent", "us-1"), ("haproxy", "eu-1"), ("apps.agent", "eu-1")]
)
def test_a_killed_part_of_a_node_comes_back_and_touches_no_other_node(
    demo: RunningDemo, words: tuple[str, str]
) -> None:
    others = [name for name in demo.node_urls() if name != words[1]]
    with demo.watched_traffic(*others) as failed:
        killed = demo.kill(*words)
        text = f"after {killed[0]}"
        demo.put_answer(text)
        assert demo.everywhere(text) == []
    assert failed == []


def test_a_killed_redis_loses_no_change(demo: RunningDemo) -> None:
    with demo.watched_traffic(*demo.node_urls()) as failed:
        demo.kill("redis-server")
        demo.put_answer("redis killed")
        assert demo.everywhere("redis killed") == []
    assert failed == []
    assert until(lambda: call(f"{demo.config.console_url}/readyz")[0] == 200)


def test_ctrl_c_leaves_no_process_behind() -> None:
    with running_demo() as demo:
        assert demo.process is not None
        assert len(processes(demo.config)) > 18
        demo.process.send_signal(signal.SIGINT)
        demo.process.communicate(timeout=PATIENCE_S)
        assert demo.process.returncode == 0
        assert processes(demo.config) == []
