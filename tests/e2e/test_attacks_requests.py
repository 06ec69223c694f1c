"""Attacks 1 to 8 against a whole demo: what one customer asks for is refused, or reaches nobody else.

Poison objects have a module of their own (`test_attacks_poison`), and so have machines (`test_attacks_machines`).
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from deploy.demo.ready import call
from tests.e2e.demo import RunningDemo, running_demo
from tests.e2e.installation import wait_until
from tests.e2e.poison import certificate, signed
from tests.e2e.test_server_names import BAD, GOOD, compiled, env, status_of
from tests.e2e.test_server_names import NAME as RENAMED
from tests.e2e.verdicts import trial

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(600)]

REFUSED = 422
NAME = "shop.acme.example"
LOOP_HOST, PROBE_HOST = "loop.globex.example", "probe.globex.example"


@pytest.fixture(scope="module")
def demo() -> Iterator[RunningDemo]:
    with running_demo() as running:
        running.put_answer("well")
        assert running.everywhere("well") == []
        yield running


def ask(demo: RunningDemo, method: str, path: str, body: Any = None, who: str = "customer", **more: str) -> Any:
    """One request to the API as the customer acme, or as the operator; status and body."""
    headers = {
        "Authorization": f"Bearer {demo.keys[f'{who}_token']}",
        "Content-Type": "application/json",
        "If-Match": "*",
        **more,
    }
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    status, answer = call(f"{demo.config.console_url}/api/v1/{path}", method, headers=headers, body=text)
    try:
        return status, json.loads(answer)
    except ValueError:
        return status, answer


def apply(demo: RunningDemo, *objects: dict[str, Any]) -> Any:
    """As the operator."""
    return ask(demo, "PUT", "apply", {"objects": list(objects)}, who="operator")


def with_weak_authority() -> dict[str, str]:
    """A good leaf, and after it one of 1 024 bits."""
    good, weak = certificate(NAME, 2048), certificate("ca.example", 1024)
    return {"chain": good["chain"] + weak["chain"], "key": good["key"]}


def test_certificates_that_no_node_takes_are_refused_at_upload(demo: RunningDemo) -> None:
    control = "tests/e2e/test_attacks_poison.py::test_what_one_customer_wrote_and_haproxy_refuses_holds_up_nobody"
    with trial("1: certificates that HAProxy refuses, uploaded", control) as seen:
        tries = {
            "RSA 1024": certificate(NAME, 1024),
            "P-192": signed(NAME, ec.generate_private_key(ec.SECP192R1())),
            "a CA": with_weak_authority(),
        }
        for what, spec in tries.items():
            status, answer = ask(demo, "POST", "certificates", {"name": "evil", "spec": spec})
            assert status == REFUSED, answer
            seen.saw(f"{what}: 422")
        status, answer = ask(demo, "POST", "certificates", {"name": "good", "spec": certificate(NAME, 2048)})
        assert status == 201, f"the control, a good one, is refused: {answer}"
        ask(demo, "DELETE", f"certificates/{answer['id']}")


def test_a_pool_that_leads_back_to_the_balancer_goes_round_once(demo: RunningDemo) -> None:
    control = "tests/e2e/test_refused_requests.py::test_without_the_mark_one_request_goes_round_and_round"
    with trial("2: one request through a pool that is the balancer itself", control) as seen:
        node = demo.topology.nodes()[0]
        port = demo.topology.listener_ports()[0] + node.port_offset
        servers = [{"name": "self", "address": "127.0.0.1", "port": port}]
        spec = {
            "protocol": "http",
            "health_check": {"path": ""},
            "backends": [{"region": node.region, "servers": servers}],
        }
        action = {"pools": [{"pool": "loop", "weight": 1}]}
        way = {"load_balancer": "front", "hostname": LOOP_HOST, "path": "/", "action": action}
        objects = [
            {"kind": "Pool", "name": "loop", "account": "globex", "spec": spec},
            {"kind": "Route", "name": "loop", "account": "globex", "spec": way},
        ]
        status, answer = apply(demo, *objects)
        assert status in (200, 202), answer
        url = demo.node_urls()[node.name]
        wait_until(lambda: call(url, headers={"Host": LOOP_HOST})[0] not in (0, 404), "the circle is live")
        statuses = {call(url, headers={"Host": LOOP_HOST})[0] for _ in range(20)}
        assert statuses == {508}
        assert demo.answers(node.name, "well")
        seen.saw("20 requests, each answered 508; another customer's route answers beside it")
        own = {
            "name": "own",
            "spec": spec | {"backends": [{"region": node.region, "servers": [servers[0] | {"address": LOOP_HOST}]}]},
        }
        status, answer = ask(demo, "POST", "pools", own)
        assert status == REFUSED, answer
        seen.saw("the platform's own hostname as a server: 422")


class Silent(threading.Thread):
    """Accepts connections and never answers."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.held: list[socket.socket] = []
        self.start()

    def run(self) -> None:
        """Until the socket is closed."""
        while True:
            try:
                self.held.append(self.server.accept()[0])
            except OSError:
                return


@contextmanager
def silent_receiver() -> Iterator[Silent]:
    receiver = Silent()
    try:
        yield receiver
    finally:
        receiver.server.close()
        for each in receiver.held:
            each.close()


def schedules(demo: RunningDemo, who: str, names: list[str], spec: dict[str, Any]) -> list[int]:
    """Make them; their ids."""
    found = []
    for name in names:
        status, answer = ask(demo, "POST", "schedules", {"name": name, "spec": spec}, who=who)
        assert status == 201, answer
        found.append(answer["id"])
    return found


def test_slow_webhooks_of_one_customer_delay_no_schedule_of_others(demo: RunningDemo) -> None:
    control = "tests/apps/test_fair_work.py::test_slow_receivers_of_one_delay_no_schedule_of_others"
    with trial("4: 20 schedules to a receiver that never answers", control) as seen, silent_receiver() as receiver:
        port = receiver.server.getsockname()[1]
        flood = {
            "when": {"every_s": 1},
            "overlap": "allow",
            "timeout_s": 300,
            "target": {"webhook": {"url": f"https://127.0.0.1:{port}/x"}},
        }
        ids = schedules(demo, "customer", [f"flood-{number}" for number in range(20)], flood)
        wait_until(lambda: len(receiver.held) >= 2, "the flood has what it gets")
        calm = {"when": {"every_s": 1}, "target": {"topic": {"topic": "tick"}}}
        (mine,) = schedules(demo, "operator", ["calm"], calm)
        begun = time.monotonic()
        wait_until(lambda: succeeded(demo, mine) >= 5, "another account's schedule runs")
        seen.saw(f"the receiver holds {len(receiver.held)} connections")
        seen.took("5 runs of another's schedule of each second", time.monotonic() - begun, 10.0)
        for each in ids:
            ask(demo, "DELETE", f"schedules/{each}")
        ask(demo, "DELETE", f"schedules/{mine}", who="operator")


def succeeded(demo: RunningDemo, schedule: int) -> int:
    """How many of its runs have come to a good end."""
    status, answer = ask(demo, "GET", f"schedules/{schedule}/runs", who="operator")
    assert status == 200, answer
    return sum(each["state"] == "done" for each in answer["items"])


def test_a_name_that_rebinds_leads_to_no_address_of_ours() -> None:
    """On a node of its own, whose name server is ours: the demo asks the machine's."""
    control = "tests/e2e/test_server_names.py::test_without_looking_at_addresses_a_name_leads_anywhere"
    tried = "5: a server's name that leads to an address of the installation, later or at once"
    with trial(tried, control) as seen, env() as (names, node, good, bad):
        names.addresses[RENAMED] = [GOOD]
        node.push(compiled(node, good), 1)
        wait_until(lambda: node.get()[0] == 200, "it leads to a server")
        names.addresses[RENAMED] = [BAD]
        wait_until(lambda: node.get()[0] == 503, "it is given up")
        seen.saw(f"503, {good.asked} requests at the server and {bad.asked} there; {status_of(node)['check']}")
        assert (good.asked > 0, bad.asked) == (True, 0)


def viewer(demo: RunningDemo) -> str:
    """A token that may read only."""
    spec = {"name": f"reader-{time.monotonic_ns()}", "role": "viewer"}
    status, answer = ask(demo, "POST", "tokens", spec)
    assert status == 201, answer
    return str(answer["token"])


def test_who_may_only_read_makes_nobody_read_a_large_body(demo: RunningDemo) -> None:
    control = "tests/interfaces/api/test_api_bodies.py::test_who_may_write_something_is_read"
    with trial("6: 2 MB of YAML from a viewer", control) as seen:
        bearer = {"Authorization": f"Bearer {viewer(demo)}", "Content-Type": "application/yaml"}
        begun = time.monotonic()
        status, _ = ask(demo, "PUT", "apply", "[" + "a, " * 700_000 + "a]", **bearer)
        seen.took(f"{status}", time.monotonic() - begun, 1.0)
        assert status == 403


def test_public_suffixes_and_unverified_names_keep_nobody_out(demo: RunningDemo) -> None:
    with trial("7: *.co.uk, and an unverified wildcard", "mutant:unverified-wildcards-keep-others-out") as seen:
        status, answer = ask(demo, "POST", "hostnames", {"name": "*.co.uk"})
        assert status == REFUSED, answer
        status, mine = ask(demo, "POST", "hostnames", {"name": "*.brand.example"})
        assert status == 201, mine
        status, theirs = ask(demo, "POST", "hostnames", {"name": "www.brand.example"}, who="operator")
        assert status == 201, theirs
        for who, each in (("customer", mine), ("operator", theirs)):
            assert ask(demo, "DELETE", f"hostnames/{each['id']}", who=who)[0] == 204
        status, again = ask(demo, "POST", "hostnames", {"name": "www.brand.example"}, who="operator")
        assert status == 201, again
        ask(demo, "DELETE", f"hostnames/{again['id']}", who="operator")
        seen.saw("the suffix 422, another's name below the wildcard 201, no cooldown after giving up")


def raw(demo: RunningDemo, head: str) -> int:
    """The status of a node's answer to these bytes."""
    host, _, port = next(iter(demo.node_urls().values())).removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head.encode() + b"\r\nConnection: close\r\n\r\n")
        return int(connection.recv(4096).split()[1])


def test_requests_that_are_none_are_refused(demo: RunningDemo) -> None:
    control = (
        "tests/e2e/test_refused_requests.py::test_what_asks_for_the_balancer_itself_is_refused_as_the_reference_says"
    )
    with trial("8: a Host with a slash, CONNECT, OPTIONS *, a huge number", control) as seen:
        assert raw(demo, f"GET / HTTP/1.1\r\nHost: {PROBE_HOST}") == 200, "the control: the same, well-formed"
        assert raw(demo, f"GET / HTTP/1.1\r\nHost: {PROBE_HOST}.") == 200
        for what, head in {
            "slash": f"GET / HTTP/1.1\r\nHost: {PROBE_HOST}/x",
            "CONNECT": f"CONNECT {PROBE_HOST}:443 HTTP/1.1\r\nHost: {PROBE_HOST}:443",
            "OPTIONS *": f"OPTIONS * HTTP/1.1\r\nHost: {PROBE_HOST}",
        }.items():
            status = raw(demo, head)
            assert 400 <= status < 600, what
            seen.saw(f"{what}: {status}")
        status, answer = ask(demo, "POST", "pools", '{"name":"n","spec":{"server_timeout_ms":' + "9" * 5_000 + "}}")
        assert status in (400, REFUSED)
        assert "set_int_max_str_digits" not in json.dumps(answer)
        seen.saw(f"a huge number: {status}")
