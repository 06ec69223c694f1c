"""Limits per client in a real HAProxy: who is counted as one, who is let through, and what the others get."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.policy import ClientLimit, HeaderChanges, Rules
from apps.compiler.policies import rule_set
from tests.e2e.rendered_proxy import Answer, RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

# A minute's limit does not depend on how busy the machine is; 127.0.0.0/8 is where the tests ask from.
FEW = ClientLimit(requests=3, per="minute")
CASES = {
    "address": FEW,
    "wider": replace(FEW, requests=4, ipv4_prefix=24),
    "header": replace(FEW, key="header", key_name="X-Api-Key"),
    "cookie": replace(FEW, key="cookie", key_name="session"),
    "exempt": replace(FEW, exempt=("127.0.0.0/8", "2001:db8::/32")),
    "not-exempt": replace(FEW, exempt=("198.51.100.0/24",)),
    "logged": replace(FEW, log_only=True),
    "dropped": replace(FEW, action="silent_drop"),
    "tarred": replace(FEW, action="tarpit"),
    "by-route": replace(FEW, counted_for="route", requests=2),
    "by-hostname": replace(FEW, counted_for="hostname", requests=2),
    "burst": ClientLimit(requests=2, burst=2),
    "banned": replace(FEW, ban_after=2, ban_within_s=10, ban_for_s=10),
    "banned-later": replace(FEW, ban_after=1000, ban_within_s=10, ban_for_s=10),
    "says-nothing": ClientLimit(exempt=("192.0.2.0/24",)),
}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """Two routes for each case, `<case>.example` and `<case>.two.example`, and `plain.example` without a limit."""
    told = HeaderChanges(set=(("X-Client", "{client_address}"),))
    sets = {name: rule_set(Rules(client_limit=said, request_headers=told)) for name, said in CASES.items()}
    hosts = [(name, f"{name}{rest}.example") for rest in ("", ".two") for name in sets]
    routes = [route(number, hostname=host, rule_set=sets[name].id) for number, (name, host) in enumerate(hosts, 2)]
    below = route(500, hostname="by-hostname.example", path="/below", rule_set=sets["by-hostname"].id)
    other = route(600, hostname="other.example", account="other", rule_set=sets["address"].id)
    served = replace(front(route(1, hostname="plain.example"), *routes, below, other), rule_sets=tuple(sets.values()))
    directory: Path = tmp_path_factory.mktemp("limits")
    with echo_servers(1) as ports:
        servers = (server(1, address="127.0.0.1", port=ports[0]),)
        pools = (pool(1, servers=servers),)
        compilation = compile_snapshot(snapshot(served, pools=pools, local_development=True))
        assert compilation.left_out == ()
        with running(compilation.output, directory) as found:
            yield found


@pytest.fixture(autouse=True)
def _nobody_has_asked(proxy: RenderedProxy) -> None:
    for table in ("st_clients_minute", "st_clients_second", "st_over_10", "st_banned_10"):
        proxy.command(f"clear table {table}")


def ask(
    proxy: RenderedProxy,
    name: str,
    *,
    path: str = "/",
    source: str = "127.0.0.1",
    headers: Mapping[str, str] | None = None,
    patience_s: float = 60,
) -> Answer:
    """One request to a case, from any address of this machine."""
    port = proxy.ports["lst-1"]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience_s, source_address=(source, 0))
    try:
        connection.request("GET", path, headers={"Host": f"{name}.example", **(headers or {})})
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode())
    finally:
        connection.close()


def statuses(proxy: RenderedProxy, name: str, count: int, **fields: object) -> list[int]:
    """The answers to some requests."""
    return [ask(proxy, name, **fields).status for _ in range(count)]  # type: ignore[arg-type]


def test_one_address_gets_its_requests_and_then_429(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "address", 5) == [200, 200, 200, 429, 429]
    refused = ask(proxy, "address")
    assert refused.headers["retry-after"] == "20"
    assert refused.body == "Too many requests. Try again later.\n"


def test_another_address_is_another_client_unless_the_prefix_joins_them(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "address", 4) == [200, 200, 200, 429]
    assert ask(proxy, "address", source="127.0.0.2").status == 200
    assert statuses(proxy, "wider", 4) == [200] * 4
    assert ask(proxy, "wider", source="127.0.0.2").status == 429
    assert ask(proxy, "wider", source="127.0.1.1").status == 200


def test_a_forged_forwarded_address_changes_nothing(proxy: RenderedProxy) -> None:
    found = [
        ask(proxy, "address", headers={"X-Forwarded-For": f"192.0.2.{n}", "Forwarded": f"for=192.0.2.{n}"}).status
        for n in range(5)
    ]
    assert found == [200, 200, 200, 429, 429]


def test_the_server_still_sees_the_client_and_not_the_key(proxy: RenderedProxy) -> None:
    headers = ask(proxy, "address", source="127.0.0.9").json["headers"]
    assert isinstance(headers, dict)
    assert headers["x-forwarded-for"] == ["127.0.0.9"]
    assert headers["x-client"] == ["127.0.0.9"]  # rules that come after the count see the client as well


@pytest.mark.parametrize(("name", "key"), [("header", "X-Api-Key: {}"), ("cookie", "Cookie: a=b; session={}")])
def test_keys_of_headers_and_cookies_count_apart_from_each_other_and_from_addresses(
    proxy: RenderedProxy, name: str, key: str
) -> None:
    def with_key(value: str) -> dict[str, str]:
        header, _, text = key.format(value).partition(": ")
        return {header: text}

    assert statuses(proxy, name, 4, headers=with_key("one")) == [200, 200, 200, 429]
    assert statuses(proxy, name, 1, headers=with_key("two")) == [200]
    assert statuses(proxy, name, 1, headers=with_key("one"), source="127.0.0.2") == [429]
    assert statuses(proxy, name, 4) == [200, 200, 200, 429], "who sends none is counted by address"
    assert statuses(proxy, name, 1, headers=with_key("127.0.0.1")) == [200]


def test_exempt_networks_pass_and_others_do_not(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "exempt", 6) == [200] * 6
    assert statuses(proxy, "not-exempt", 4) == [200, 200, 200, 429]


def test_a_route_without_a_limit_is_left_alone(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "address", 4)[-1] == 429
    assert statuses(proxy, "plain", 6) == [200] * 6
    assert statuses(proxy, "says-nothing", 6) == [200] * 6


def test_log_only_lets_through_and_tells_the_server(proxy: RenderedProxy) -> None:
    found = [ask(proxy, "logged", headers={"X-Client-Limit": "forged"}).json["headers"] for _ in range(5)]
    assert [each.get("x-client-limit") for each in found if isinstance(each, dict)] == [None] * 3 + [["exceeded"]] * 2


def test_routes_of_an_account_count_together_or_apart(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "address", 4)[-1] == 429
    assert statuses(proxy, "address.two", 1) == [429]
    assert statuses(proxy, "other", 1) == [200], "another account's routes never count with these"
    assert statuses(proxy, "by-route", 3) == [200, 200, 429]
    assert statuses(proxy, "by-route.two", 3) == [200, 200, 429]
    assert statuses(proxy, "by-hostname", 2) == [200, 200]
    assert statuses(proxy, "by-hostname", 1, path="/below") == [429]
    assert statuses(proxy, "by-hostname.two", 1) == [200]


def test_a_burst_bounds_each_second(proxy: RenderedProxy) -> None:
    started = time.monotonic()
    found = statuses(proxy, "burst", 4)
    if time.monotonic() - started < 0.5:  # else the machine was too busy to ask four times in one second
        assert found == [200, 200, 429, 429]


@pytest.mark.slow(reason="a tarpit holds a client for five seconds")
def test_a_drop_and_a_tarpit_give_no_quick_answer(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "dropped", 3) == [200] * 3
    with pytest.raises((TimeoutError, ConnectionError)):  # the client is not even told that the connection is gone
        ask(proxy, "dropped", patience_s=2)
    assert statuses(proxy, "tarred", 3) == [200] * 3
    started = time.monotonic()
    assert ask(proxy, "tarred").status == 429
    assert time.monotonic() - started > 4


@pytest.mark.slow(reason="no ban is shorter than ten seconds")
def test_who_is_over_the_limit_too_often_is_banned_and_comes_back(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "banned", 6) == [200, 200, 200, 429, 429, 429]
    proxy.command("clear table st_clients_minute")
    assert statuses(proxy, "banned", 2) == [429, 429], "the ban stands without any count"
    assert statuses(proxy, "banned", 1, source="127.0.0.2") == [200], "nobody else is banned"
    assert statuses(proxy, "banned-later", 6) == [200, 200, 200, 429, 429, 429]
    proxy.command("clear table st_clients_minute")
    assert statuses(proxy, "banned-later", 1) == [200], "too few refusals are no ban"
    time.sleep(11)  # what is asked meanwhile does not lengthen it
    proxy.command("clear table st_over_10")
    assert statuses(proxy, "banned", 1) == [200]
