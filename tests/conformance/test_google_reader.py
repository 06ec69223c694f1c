"""The reader of Google, through Google's own clients, against a server shaped after the documented exchanges."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.compiler.targets.terraform.google.render import render
from apps.drivers.clouds.contract import CloudAccess, CloudError
from apps.drivers.clouds.google import GoogleReader
from apps.drivers.clouds.registry import open_reader
from tests.conformance.fake_google import API, Env, Measured, served
from tests.pure.google_fixtures import everything

REQUESTS = "loadbalancing.googleapis.com/https/backend_request_count"
LATENCIES = "loadbalancing.googleapis.com/https/backend_latencies"
CONNECTIONS = "loadbalancing.googleapis.com/tcp_ssl_proxy/new_connections"


@pytest.fixture
def env() -> Env:
    found = Env()
    found.apply(render(everything()))
    return found


@pytest.fixture
def url(env: Env) -> Iterator[str]:
    with served(env) as found:
        yield found


def _reader(url: str, project: str = "acme-prod", **fields: Any) -> GoogleReader:
    return GoogleReader(CloudAccess("google", "global", project, url, **fields))


def test_every_endpoint_of_ours_is_told_with_what_the_check_says(env: Env, url: str) -> None:
    env.unhealthy.add(("198.51.100.11", 8011))
    found = {(each.object_id, each.address, each.port, each.state) for each in _reader(url).target_health()}
    assert found == {
        ("bkd-1", "192.0.2.10", 8001, "healthy"),
        ("bkd-11", "198.51.100.11", 8011, "unhealthy"),
        ("bkd-2", "192.0.2.10", 8002, "healthy"),
        ("bkd-3", "192.0.2.10", 5432, "healthy"),
    }


def test_services_of_others_and_of_other_stacks_are_not_asked(env: Env, url: str) -> None:
    group = env.add("networkEndpointGroups", {"name": "theirs"}, "europe-west3-a")
    env.add("backendServices", {"name": "theirs", "backends": [{"group": group}]})
    env.endpoints["zones/europe-west3-a/theirs"] = [{"ipAddress": "192.0.2.99", "port": 1}]
    assert "192.0.2.99" not in {each.address for each in _reader(url).target_health()}
    assert list(_reader(url, stack="stk-4").target_health()) == []
    assert list(_reader(url, stack="stk-3").target_health()) != []


def test_lists_are_read_to_their_last_page(env: Env, url: str) -> None:
    for number in range(7):
        env.add("urlMaps", {"name": f"theirs-{number}"})
    names = [each.name for each in _reader(url).load_balancers()]
    assert names == [
        "sw-stk3-lst-9",
        "sw-stk3-lst-1",
        "sw-stk3-lst-2",
        "sw-stk3-lst-3",
        *(f"theirs-{n}" for n in range(7)),
    ]


def _minute(minutes_ago: int) -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=minutes_ago)


def test_numbers_are_whole_minutes_of_groups_oldest_first(env: Env, url: str) -> None:
    group = "sw-stk3-bkd-1"
    for minutes_ago, good, bad in ((5, 100, 3), (4, 200, 0)):
        for status, count in (("200", good), ("500", bad)):
            labels = {"backend_name": group, "response_code_class": status}
            env.measured.append(Measured(REQUESTS, _minute(minutes_ago), labels, (count,)))
        latencies = tuple(float(value) for value in range(1, 101))
        env.measured.append(Measured(LATENCIES, _minute(minutes_ago), {"backend_name": group}, latencies))
    found = _reader(url).numbers(_minute(30))
    assert [(each.object_id, each.at, each.requests, each.status_2xx, each.status_5xx) for each in found] == [
        ("bkd-1", _minute(5), 103, 100, 3),
        ("bkd-1", _minute(4), 200, 200, 0),
    ]
    assert (found[0].p50_ms, found[0].p95_ms, found[0].p99_ms) == (50.0, 95.0, 99.0)


def test_numbers_begin_after_what_is_known(env: Env, url: str) -> None:
    known = _minute(5)
    fresh = known + timedelta(minutes=1)
    for minute in (known, fresh):
        labels = {"backend_name": "sw-stk3-bkd-3"}
        env.measured.append(Measured(CONNECTIONS, minute, labels, (7,)))
    found = _reader(url).numbers(known)
    assert [(each.at, each.connections) for each in found] == [(fresh, 7)]


def test_listeners_have_numbers_of_their_own(env: Env, url: str) -> None:
    labels = {"url_map_name": "sw-stk3-lst-2", "response_code_class": "400"}
    env.measured.append(Measured("loadbalancing.googleapis.com/https/request_count", _minute(3), labels, (9,)))
    found = _reader(url).numbers(_minute(9))
    assert [(each.object_id, each.requests, each.status_4xx) for each in found] == [("lst-2", 9, 9)]


def test_numbers_of_others_are_not_ours(env: Env, url: str) -> None:
    env.measured.append(Measured(REQUESTS, _minute(3), {"backend_name": "theirs"}, (9,)))
    assert list(_reader(url).numbers(_minute(9))) == []


def test_a_url_map_is_described_with_all_around_it_and_no_key(url: str) -> None:
    found = _reader(url).describe("urlMaps/sw-stk3-lst-2")
    described = found.described
    assert [proxy["protocol"] for proxy in described["proxies"]] == ["https"]
    assert [rule["IPAddress"] for rule in described["forwardingRules"]] == ["203.0.113.1"]
    assert sorted(described["backendServices"]) == ["sw-stk3-nobody", "sw-stk3-pool-1", "sw-stk3-pool-2"]
    (group,) = [name for name in described["groups"] if name.startswith("us-east4-b/sw-stk3-bkd-11-")]
    assert described["groups"][group]["endpoints"] == [{"ipAddress": "198.51.100.11", "port": 8011}]
    assert described["healthChecks"]["sw-stk3-pool-1"]["httpHealthCheck"]["requestPath"] == "/health"
    assert "PRIVATE KEY" not in str(described)


def test_a_proxy_of_tcp_is_described_with_its_service(url: str) -> None:
    described = _reader(url).describe("targetTcpProxies/sw-stk3-lst-9").described
    assert sorted(described["backendServices"]) == ["sw-stk3-pool-3"]
    assert [rule["portRange"] for rule in described["forwardingRules"]] == ["5432"]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("urlMaps/none", "404"),
        ("lbs/none", "is not a load balancer"),
        ("urlMaps/", "is not a load balancer"),
        ("urlMaps/../x", "is not a load balancer"),
        ("urlMaps/a?b", "is not a load balancer"),
    ],
)
def test_what_is_not_there_is_said_so(url: str, wanted: str, words: str) -> None:
    with pytest.raises(CloudError, match=words):
        _reader(url).describe(wanted)


def test_a_project_that_may_not_be_read_is_said_so(url: str) -> None:
    with pytest.raises(CloudError, match=r"403.*permission"):
        _reader(url, project="theirs").target_health()
    with pytest.raises(CloudError, match=r"403.*permission"):
        _reader(url, project="theirs").numbers(_minute(9))


@pytest.mark.parametrize("answer", [(500, b"{}"), (503, b"no"), (200, b"<html>"), (200, b"[1]")])
def test_whatever_the_cloud_answers_is_an_error_in_words(env: Env, url: str, answer: tuple[int, bytes]) -> None:
    env.down = answer
    reader = _reader(url)
    for ask in (reader.target_health, reader.load_balancers, lambda: reader.numbers(_minute(9))):
        with pytest.raises(CloudError):
            ask()


def test_a_cloud_that_is_not_there_is_said_so() -> None:
    with pytest.raises(CloudError, match="reached"):
        _reader("http://127.0.0.1:9").load_balancers()


def test_an_account_without_a_project_is_refused() -> None:
    with pytest.raises(CloudError, match="project"):
        GoogleReader(CloudAccess("google", "global"))


def test_the_registry_opens_this_reader(url: str) -> None:
    assert isinstance(open_reader(CloudAccess("google", "global", "acme-prod", url)), GoogleReader)


def test_importing_the_reader_imports_none_of_googles_libraries() -> None:
    code = (
        "import sys; import apps.drivers.clouds.google; "
        "print([name for name in sys.modules if name.startswith(('google.', 'grpc', 'proto'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_networks_of_the_project_are_listed_with_their_subnetworks(env: Env, url: str) -> None:
    subnetworks = [f"{API}/projects/acme-prod/regions/europe-west3/subnetworks/web"]
    env.resources["networks"]["global/main"] = {"name": "main", "subnetworks": subnetworks}
    reader = _reader(url)
    assert (reader.regions(), reader.buckets()) == (["global"], [])
    (found,) = reader.networks()
    assert (found.id, [(each.id, each.zone) for each in found.subnets]) == ("main", [("web", "europe-west3")])
