"""Policies in a real HAProxy: what servers and clients get, and what happens to requests without any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.policy import (
    Cors,
    HeaderChanges,
    Maintenance,
    ResponseHeaders,
    Rewrite,
    Rules,
    SecurityHeaders,
)
from apps.compiler.model.shared import Protocol, Redirect
from apps.compiler.policies import rule_set
from apps.compiler.questions.trace import Question, trace
from tests.e2e.rendered_proxy import Answer, RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

REPORTED = '{"report_to":"nel","max_age":60,"include":{"a":[{}]}}'
CASES = {
    "headers": Rules(
        request_headers=HeaderChanges(
            set=(("X-Client", "{client_address} asks {method} {scheme}://{host}:{port}{path} 100%"),),
            add=(("X-Tag", "a"), ("X-Tag-Two", "%[src] $HOME 'quoted' \"twice\" \\ back")),
            remove=("X-Secret",),
        ),
        response_headers=ResponseHeaders(set=(("X-Id", "{request_id}"),), remove=("X-Echo-Port",)),
        security_headers=SecurityHeaders(hsts_seconds=60, no_sniff=True, frames="deny", referrer="no-referrer"),
    ),
    "told": Rules(
        request_headers=HeaderChanges(
            set=(("X-Uri", "{uri}"), ("X-Moved", "{header:X-Old}/{header:X-None}"), ("X-Forwarded-Ssl", "on")),
            remove=("X-Old",),
        ),
        response_headers=ResponseHeaders(
            set=(
                ("X-Asked", "{uri} {header:X-Old}"),
                ("X-Server", "by {server}"),
                ("NEL", REPORTED),
                ("Report-To", '{"group":"nel","url":"{scheme}://{host}"}'),
            )
        ),
        rewrite=Rewrite(path="/all"),
    ),
    "cors": Rules(
        cors=Cors(
            ("https://app.example.com", "https://*.example.org"),
            ("GET", "PUT"),
            ("X-Token",),
            ("X-Echo-Port",),
            credentials=True,
            max_age_s=600,
        )
    ),
    "open": Rules(cors=Cors(("*",))),
    "rewrite": Rules(rewrite=Rewrite("inside.example.com", "/all%20of/it", drop_query=True)),
    "pattern": Rules(rewrite=Rewrite(path_regex="/v1/([^/]*)/(.*)", path_replacement=r"/items/\2/by/\1")),
    "kept": Rules(rewrite=Rewrite(query_keep=("a", "b.c"))),
    "fewer": Rules(rewrite=Rewrite(query_drop=("a", "b.c"), query_set=(("c", "1%20%25"), ("d", "")))),
    "cached": Rules(security_headers=SecurityHeaders(caching="no-store")),
    "closed": Rules(maintenance=Maintenance(enabled=True, body="<h1>Back at 10%</h1>\n", retry_after_s=60)),
    "passing": Rules(maintenance=Maintenance(enabled=True, allow=("198.51.100.0/24", "127.0.0.0/8"))),
    "ended": Rules(maintenance=Maintenance(enabled=False, body="not shown")),
}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """One route for each case, `<case>.example`, and `plain.example` with no rules at all."""
    sets = {name: rule_set(rules) for name, rules in CASES.items()}
    routes = [route(number, hostname=f"{name}.example", rule_set=sets[name].id) for number, name in enumerate(sets, 2)]
    away = route(90, "rewrite.example", "/away", rule_set=sets["rewrite"].id, redirect=Redirect(308, port=8443))
    served = replace(front(route(1, hostname="plain.example"), *routes, away), rule_sets=tuple(sets.values()))
    directory: Path = tmp_path_factory.mktemp("policies")
    with echo_servers(1) as ports:
        pools = (pool(1, servers=(server(1, address="127.0.0.1", port=ports[0]),)),)
        compilation = compile_snapshot(snapshot(served, pools=pools, local_development=True))
        assert compilation.left_out == ()
        with running(compilation.output, directory) as found:
            yield found


def ask(proxy: RenderedProxy, name: str, method: str = "GET", path: str = "/a", **headers: str) -> Answer:
    """One request to the route of a case; `x_token="1"` is the header X-Token."""
    sent: Mapping[str, str] = {key.replace("_", "-"): value for key, value in headers.items()}
    return proxy.ask("lst-1", f"{name}.example", path, method, sent)


def got(answer: Answer, name: str) -> object:
    """The values of a header that the server got."""
    headers = answer.json["headers"]
    assert isinstance(headers, dict)
    return headers.get(name)


def test_servers_get_headers_with_variables_and_nothing_else_of_a_value_counts(proxy: RenderedProxy) -> None:
    answer = ask(proxy, "headers", path="/a?b=c", X_Secret="s", X_Client="forged", X_Tag="own")
    port = proxy.ports["lst-1"]
    assert got(answer, "x-client") == [f"127.0.0.1 asks GET http://headers.example:{port}/a 100%"]
    assert got(answer, "x-tag") == ["own", "a"]
    assert got(answer, "x-tag-two") == ["%[src] $HOME 'quoted' \"twice\" \\ back"]
    assert got(answer, "x-secret") is None


def test_clients_get_headers_and_hsts_is_no_matter_of_http(proxy: RenderedProxy) -> None:
    found = ask(proxy, "headers").headers
    assert found["x-id"] == got(ask(proxy, "headers"), "x-request-id") or len(found["x-id"]) == 32
    assert (found["x-frame-options"], found["x-content-type-options"]) == ("DENY", "nosniff")
    assert found["referrer-policy"] == "no-referrer"
    assert not {"strict-transport-security", "x-echo-port"} & found.keys()


def test_values_come_from_the_request_as_it_was_before_anything_changed_it(proxy: RenderedProxy) -> None:
    answer = ask(proxy, "told", path="/a?b=c", X_Old="1, 2", X_Forwarded_Ssl="off")
    assert [got(answer, name) for name in ("x-uri", "x-moved", "x-old")] == [["/a?b=c"], ["1, 2/"], None]
    assert got(answer, "x-forwarded-ssl") == ["on"]
    assert answer.headers["x-asked"] == "/a?b=c 1, 2"
    assert answer.headers["nel"] == REPORTED
    assert answer.headers["report-to"] == '{"group":"nel","url":"http://told.example"}'
    assert answer.headers["x-server"] == "by srv-1"
    assert got(ask(proxy, "told", path="/a"), "x-uri") == ["/a"]


def test_a_route_without_rules_is_left_alone(proxy: RenderedProxy) -> None:
    answer = ask(proxy, "plain", X_Secret="s", Origin="https://app.example.com")
    assert got(answer, "x-secret") == ["s"]
    assert got(answer, "x-client") is None
    assert not {"x-id", "x-frame-options", "access-control-allow-origin", "vary"} & answer.headers.keys()


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://app.example.com", True),
        ("https://deep.app.example.org", True),
        ("https://example.org", False),
        ("https://evil-example.org", False),
        ("http://app.example.com", False),
        ("https://app.example.com.evil.example", False),
        ("https://app.example.org.evil.example", False),
        ("null", False),
    ],
)
def test_only_origins_that_are_named_may_read_responses(proxy: RenderedProxy, origin: str, allowed: bool) -> None:
    found = ask(proxy, "cors", Origin=origin).headers
    assert found.get("access-control-allow-origin") == (origin if allowed else None)
    assert found.get("access-control-allow-credentials") == ("true" if allowed else None)
    assert "Origin" in found["vary"]


def test_a_preflight_is_answered_without_a_server(proxy: RenderedProxy) -> None:
    origin = "https://app.example.com"
    answer = ask(proxy, "cors", "OPTIONS", Origin=origin, Access_Control_Request_Method="PUT")
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (204, origin)
    assert answer.headers["access-control-allow-methods"] == "GET,PUT"
    assert answer.headers["access-control-allow-headers"] == "X-Token"
    assert answer.headers["access-control-max-age"] == "600"
    refused = ask(proxy, "cors", "OPTIONS", Origin="https://evil.example", Access_Control_Request_Method="PUT")
    assert "access-control-allow-origin" not in refused.headers


def test_everybody_may_read_what_is_open(proxy: RenderedProxy) -> None:
    found = ask(proxy, "open", Origin="https://any.example").headers
    assert found["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in found


def test_servers_get_another_host_and_path_and_no_query(proxy: RenderedProxy) -> None:
    answer = ask(proxy, "rewrite", path="/a?b=c")
    assert answer.json["path"] == "/all%20of/it"
    assert got(answer, "host") == ["inside.example.com"]
    assert got(answer, "x-forwarded-host") == ["rewrite.example"]


def test_a_redirect_is_made_of_what_was_asked_for_and_not_of_a_rewrite(proxy: RenderedProxy) -> None:
    assert ask(proxy, "rewrite", path="/away?b=c").headers["location"] == "http://rewrite.example:8443/away?b=c"


@pytest.mark.parametrize(
    ("case", "path"),
    [
        ("pattern", "/v1/anna/a/b?q=1"),
        ("pattern", "/v1/%2f/x"),
        ("pattern", "/v2/anna/a"),
        ("pattern", "/v1/anna"),
        ("kept", "/x?b.c=2&z=3&a=1&a=9"),
        ("kept", "/x?bxc=2&z"),
        ("kept", "/x"),
        ("fewer", "/x?a=1&aa=2&b.c=3&bxc=4&a&c=9&=5"),
        ("fewer", "/x?a=1&a=2&a=3"),
        ("fewer", "/x"),
    ],
)
def test_servers_get_the_path_and_query_that_a_trace_foretells(proxy: RenderedProxy, case: str, path: str) -> None:
    rules = rule_set(CASES[case])
    served = replace(front(route(2, hostname="a.example", rule_set=rules.id)), rule_sets=(rules,))
    foretold = trace(served, Question("a.example", path, scheme=Protocol.HTTP)).path
    assert ask(proxy, case, path=path).json["path"] == foretold
    assert (foretold == path) == (path in ("/v2/anna/a", "/v1/anna") or (case, path) == ("kept", "/x"))


def test_responses_that_say_nothing_of_caches_get_the_preset(proxy: RenderedProxy) -> None:
    assert ask(proxy, "cached").headers["cache-control"] == "no-store"
    assert "cache-control" not in ask(proxy, "plain").headers


def test_clients_get_the_page_of_maintenance_unless_they_may_pass(proxy: RenderedProxy) -> None:
    answer = ask(proxy, "closed")
    assert (answer.status, answer.body) == (503, "<h1>Back at 10%</h1>\n")
    assert answer.headers["retry-after"] == "60"
    assert ask(proxy, "passing").status == 200
    assert ask(proxy, "ended").status == 200
