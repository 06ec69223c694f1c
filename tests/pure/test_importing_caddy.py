"""Reading Caddy's JSON: servers, matchers, handlers one after the other, and what becomes of every value."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from apps.importing.caddy.durations import milliseconds
from apps.importing.caddy.reading import read_caddy
from apps.importing.contract import Import
from apps.importing.formats import recognised
from apps.importing.options import ImportOptions
from apps.importing.verdicts import Verdict

FOLDER = Path(__file__).resolve().parents[1] / "import" / "caddy"
HOUSE, ODD = ((FOLDER / name).read_text() for name in ("house.json", "odd.json"))
PROXY = {"handler": "reverse_proxy", "upstreams": [{"dial": "10.0.0.1:80"}]}


@cache
def read(text: str) -> Import:
    return read_caddy(text, {}, ImportOptions(fleets=("eu",), region="eu"))


def routes(*routes: dict[str, Any], listen: str = ":8080", **server: Any) -> Import:
    """One server without TLS, with these routes."""
    config = {"apps": {"http": {"servers": {"srv0": {"listen": [listen], "routes": list(routes), **server}}}}}
    return read(json.dumps(config, indent=1))


def handle(*handlers: dict[str, Any], **matchers: Any) -> dict[str, Any]:
    return {"handle": list(handlers)} | ({"match": [matchers]} if matchers else {})


def answer(status: int, **more: Any) -> dict[str, Any]:
    return {"handler": "static_response", "status_code": status, **more}


def specs(found: Import, kind: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: dict(each["spec"]) for each in found.documents if each["kind"] == kind}


def route(found: Import, hostname: str = "*", path: str = "/") -> dict[str, Any]:
    """The route of all paths below one."""
    [spec] = [
        each
        for each in specs(found, "Route").values()
        if (each["hostname"], each.get("path", "/")) == (hostname, path) and each.get("path_kind") in (None, "prefix")
    ]
    return spec


def verdict_of(found: Import, text: str) -> tuple[Verdict, str]:
    line = next(line for line in found.report if line.text.startswith(text))
    return line.verdict, " ".join(line.reasons)


def test_a_file_that_breaks_off_is_refused_at_its_end() -> None:
    text = json.dumps({"apps": {"http": {"servers": {"srv0": {"listen": [":80"]}}}}}, indent=1)
    found = read(text[: text.rindex("}")])
    assert [each.verdict for each in found.report] == [Verdict.NOT_POSSIBLE]


def test_its_json_is_recognised_and_a_caddyfile_says_how_it_becomes_json() -> None:
    form = recognised("pasted", HOUSE)
    assert form is not None
    assert form.name == "caddy"
    by_name = recognised("Caddyfile", (FOLDER / "Caddyfile").read_text())
    assert by_name is form
    [line] = read((FOLDER / "Caddyfile").read_text()).report
    assert "caddy adapt --pretty" in line.reasons[0]


@pytest.mark.parametrize("text", ["{", '{"apps": []}', '{"apps": {"http": {}}}', '{"apps": {"http": {"servers": 3}}}'])
def test_what_has_no_servers_is_refused_with_a_reason(text: str) -> None:
    found = read(text)
    assert found.documents == ()
    assert [line.verdict for line in found.report] == [Verdict.NOT_POSSIBLE]


@pytest.mark.parametrize("text", [HOUSE, ODD])
def test_every_value_of_a_file_has_one_verdict(text: str) -> None:
    def leaves(value: Any) -> int:
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
        return sum(map(leaves, inner)) if inner else 1

    found = read(text)
    assert len(found.report) == leaves(json.loads(text))
    assert "This line was not read." not in {reason for line in found.report for reason in line.reasons}


def test_a_file_of_one_line_is_laid_out_before_its_lines_are_counted() -> None:
    one = read(json.dumps(json.loads(HOUSE)))
    assert one == read(HOUSE)


def test_hosts_that_need_a_certificate_get_one_ordered_and_their_clients_are_sent_to_https() -> None:
    found = read(HOUSE)
    assert specs(found, "Certificate")["www-example-org"] == {"automatic": {"hostnames": ["www.example.org"]}}
    secure, plain = specs(found, "LoadBalancer")["caddy-443"], specs(found, "LoadBalancer")["caddy-80"]
    assert secure["listeners"][0]["protocol"] == "https"
    assert plain["listeners"][0]["protocol"] == "http"
    redirect = next(each for each in specs(found, "Route").values()
                    if (each["load_balancer"], each["hostname"]) == ("caddy-80", "*"))  # fmt: skip
    assert redirect["action"]["redirect"] == {"code": 308, "scheme": "https", "keep_query": True}


def test_a_server_that_speaks_http_by_choice_is_not_redirected() -> None:
    found = routes(handle(PROXY, host=["a.example.org"]), automatic_https={"disable": True})
    assert list(specs(found, "LoadBalancer")) == ["caddy-8080"]
    assert specs(found, "Certificate") == {}


def test_a_host_of_its_own_network_asks_for_a_certificate() -> None:
    found = routes(handle(PROXY, host=["nas.local"]), listen=":443")
    assert (
        "No authority gives a certificate for nas.local; say one of ours with --certificate nas.local=NAME."
        in found.needs
    )


def test_the_first_handler_that_answers_ends_the_list_and_the_rest_is_dead() -> None:
    found = routes(handle(answer(200, body="a", headers={"X-A": ["1"]}), PROXY))
    assert route(found)["action"]["fixed_response"]["body"] == "a"
    assert verdict_of(found, "reverse_proxy handler")[0] is Verdict.DEAD
    assert specs(found, "Pool") == {}


def test_of_a_group_only_the_first_route_that_matches_counts() -> None:
    first = handle(PROXY, path=["/a/*"]) | {"group": "g"}
    second = handle({"handler": "headers", "response": {"set": {"X-Second": ["yes"]}}}) | {"group": "g"}
    found = routes(first, second, handle(answer(404)))
    assert "rules" not in route(found, path="/a")
    assert route(found)["rules"] == {"response_headers": {"set": {"X-Second": "yes"}}}


def test_a_prefix_that_is_taken_away_is_not_asked_for_behind_it() -> None:
    inner = [
        handle({"handler": "rewrite", "strip_path_prefix": "/api"}),
        handle(PROXY, path=["/v1/*"]),
        handle(answer(404)),
    ]
    found = routes(handle({"handler": "subroute", "routes": inner}, path=["/api/*"]))
    assert route(found, path="/api/v1")["prefix_rewrite"] == "/v1"
    assert route(found, path="/api")["action"]["fixed_response"]["status"] == 404


def test_a_path_that_is_changed_in_an_unknown_way_is_said_where_it_is_changed() -> None:
    change = {"handler": "rewrite", "uri_substring": [{"find": "a", "replace": "b"}]}
    found = routes(handle(change), handle(PROXY, path=["/x"]), handle(answer(404)))
    assert verdict_of(found, "rewrite uri_substring[0].find")[0] is Verdict.NOT_POSSIBLE
    assert verdict_of(found, "match.path[0]")[0] is Verdict.NOT_POSSIBLE
    assert specs(found, "Pool") == {}


def test_a_place_that_another_server_guards_stays_closed() -> None:
    asked = {"match": {"status_code": [2]}, "routes": [handle({"handler": "headers"})]}
    guard = PROXY | {"rewrite": {"method": "GET", "uri": "/check"}, "handle_response": [asked]}
    found = routes(handle(guard, path=["/private/*"]), handle(PROXY))
    assert route(found, path="/private")["action"]["fixed_response"]["status"] == 403


def test_users_need_their_passwords_said() -> None:
    accounts = [{"username": "ann", "password": "$2a$14$abc"}]
    auth = {"handler": "authentication", "providers": {"http_basic": {"accounts": accounts}}}
    found = routes(handle(auth, PROXY))
    assert route(found)["rules"]["basic_auth"] == {"users": {"ann": ""}, "realm": "restricted"}
    assert any("--password ann=" in need for need in found.needs)
    assert "$2a$14$abc" not in str(found.report)


def test_a_provider_of_users_that_is_not_known_leaves_the_place_closed() -> None:
    found = routes(handle({"handler": "authentication", "providers": {"jwt": {}}}, PROXY))
    assert route(found)["action"]["fixed_response"]["status"] == 403


def test_servers_are_chosen_checked_and_reached_as_said() -> None:
    pool = specs(read(HOUSE), "Pool")["192-0-2-31-9000"]
    assert pool["balance"] == "leastconn"
    assert pool["health_check"] | {"path": "/up", "interval_ms": 5000, "rise": 1} == pool["health_check"]
    assert pool["outlier_ejection"] == {"observe": "connections", "errors": 3, "return_after_ms": 30_000}
    assert (pool["connect_timeout_ms"], pool["server_timeout_ms"]) == (2000, 20_000)
    secure = specs(read(HOUSE), "Pool")["origin-example-net-443"]
    assert secure["server_tls"] == {"verify": "system", "server_name": "origin.example.net"}


def test_the_first_of_several_servers_has_the_others_as_backups() -> None:
    many = {"handler": "reverse_proxy", "upstreams": [{"dial": "10.0.0.1:80"}, {"dial": "10.0.0.2:80"}],
            "load_balancing": {"selection_policy": {"policy": "first"}}}  # fmt: skip
    [pool] = specs(routes(handle(many)), "Pool").values()
    assert [each.get("backup", False) for each in pool["backends"][0]["servers"]] == [False, True]


def test_names_of_servers_are_looked_up_in_dns() -> None:
    srv = {"handler": "reverse_proxy", "dynamic_upstreams": {"source": "srv", "name": "_http._tcp.shop.internal"}}
    a = {"handler": "reverse_proxy", "dynamic_upstreams": {"source": "a", "name": "shop.internal", "port": "8080"}}
    found = routes(handle(srv, path=["/s"]), handle(a))
    sources = {each["backends"][0]["servers_from"] for each in specs(found, "Pool").values()}
    assert sources == {"srv://_http._tcp.shop.internal", "dns://shop.internal:8080"}


def test_php_and_files_are_said_to_be_nothing_that_nodes_do() -> None:
    found = read(ODD)
    assert verdict_of(found, "file_server handler")[0] is Verdict.NOT_POSSIBLE
    assert verdict_of(found, "reverse_proxy transport.protocol: fastcgi")[0] is Verdict.NOT_POSSIBLE


def test_a_named_route_is_read_for_each_server_that_invokes_it() -> None:
    shared = [each for each in specs(read(ODD), "Route").values() if each.get("path") == "/shared"]
    assert {each["hostname"] for each in shared} == {"secure.example.org", "alias.example.org"}


def test_wildcards_are_one_label() -> None:
    found = routes(handle(PROXY, host=["*.example.org"]), listen=":80")
    assert route(found, "*.example.org")["action"] == {"pools": [{"pool": "10-0-0-1-80"}]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1_500_000_000, 1500), ("1m30s", 90_000), ("2d", 172_800_000), ("0.5s", 500), ("soon", None), (True, None)],
)
def test_times_are_nanoseconds_or_texts(value: object, expected: int | None) -> None:
    assert milliseconds(value) == expected


MORE: list[object] = [3.5, None, True, 0, -1, "", "{", [], {}, [None], [[1]], ["a", 5]]


@pytest.mark.slow(reason="the value stands in each position of a file in turn")
@pytest.mark.parametrize("value", [{"a": 1}, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in MORE)])
def test_a_value_of_another_kind_anywhere_is_read_or_refused_and_never_fails(value: object) -> None:
    data = json.loads(ODD)["apps"]["http"]["servers"]["srv0"]
    for path in _paths(data):
        changed = json.loads(json.dumps(data))
        holder = changed
        for part in path[:-1]:
            holder = holder[part]
        holder[path[-1]] = value
        found = read(json.dumps({"apps": {"http": {"servers": {"srv0": changed}}}}))
        assert all(line.verdict for line in found.report)


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """One path of each kind of place: list items count once."""
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = [(len(value) - 1, value[-1])] if value else []
    return [each for key, inner in items for each in ((*path, key), *_paths(inner, (*path, key)))]


@pytest.mark.parametrize("status", ["1" + "0" * 4000, '"' + "9" * 10_000 + '"', "1000", "-1"])
def test_a_status_of_any_length_is_refused_at_its_line(status: str) -> None:
    text = json.dumps(
        {"apps": {"http": {"servers": {"a": {"listen": [":80"], "routes": [{"handle": [answer(200)]}]}}}}}
    )
    assert ": 200" in text
    found = read(text.replace(": 200", f": {status}"))
    lines = [each for each in found.report if "status_code" in each.text]
    assert [each.verdict for each in lines] == [Verdict.NOT_POSSIBLE]


def test_a_redirect_that_leads_to_itself_is_answered_and_said() -> None:
    there = {"Location": ["https://a.example:8080{http.request.uri}"]}
    found = routes(handle(answer(301, headers=there), host=["a.example"]))
    [own] = [
        each
        for each in specs(found, "Route").values()
        if "fixed_response" in each["action"] and each["hostname"] != "*"
    ]
    assert (own["hostname"], own["action"]["fixed_response"]["status"]) == ("a.example", 404)
    assert any("The redirect leads to itself" in " ".join(line.reasons) for line in found.report)
