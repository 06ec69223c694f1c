"""Reading haproxy.cfg: what HAProxy ignores where it stands, and what sections say of each other."""

from __future__ import annotations

from typing import Any

import pytest

from apps.definitions.reading.documents import read_object
from apps.importing.contract import Import
from apps.importing.verdicts import Verdict
from tests.pure.test_importing import DEFAULTS, frontend, read, routes, verdict_of

TCP = "defaults\n mode tcp\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n"


def spec_of(found: Import, kind: str) -> dict[str, Any]:
    (spec,) = [each["spec"] for each in found.documents if each["kind"] == kind]
    return dict(spec)


@pytest.mark.parametrize(
    "line",
    [
        "option http-server-close",
        "redirect scheme https",
        "http-request deny if { path /x }",
        "reqadd X-A:\\ b",
        "errorfile 503 /etc/503.http",
    ],
)
def test_a_line_of_http_is_dead_in_a_tcp_section(line: str) -> None:
    found = read(f"{TCP}listen db\n bind :5432\n {line}\n server s 10.0.0.1:5432\n")
    assert verdict_of(found, line)[0] is Verdict.DEAD


def test_the_same_line_counts_where_an_http_section_inherits_it_too() -> None:
    text = f"{TCP} http-response replace-header Location a b\nlisten db\n bind :5432\n server s 10.0.0.1:5432\n"
    line = "http-response replace-header Location a b"
    assert verdict_of(read(text), line)[0] is Verdict.DEAD
    assert verdict_of(read(text + "listen web\n mode http\n bind :80\n server s 10.0.0.2:80\n"), line)[0] is (
        Verdict.NOT_POSSIBLE
    )


def test_lines_of_the_other_kind_of_section_are_dead() -> None:
    text = (
        f"{DEFAULTS}frontend fe\n bind :80\n balance leastconn\n default_backend b\n"
        "backend b\n default_backend c\n server s 10.0.0.1:80\n"
    )
    found = read(text)
    assert verdict_of(found, "balance leastconn")[0] is Verdict.DEAD
    assert verdict_of(found, "default_backend c")[0] is Verdict.DEAD
    assert verdict_of(found, "default_backend b")[0] is Verdict.MAPPED


def test_a_default_that_every_section_says_otherwise_is_dead() -> None:
    found = read(f"{TCP}listen db\n bind :5432\n timeout client 3h\n server s 10.0.0.1:5432\n")
    assert verdict_of(found, "timeout client 30s")[0] is Verdict.DEAD
    assert verdict_of(found, "timeout client 3h")[0] is not Verdict.DEAD


def test_a_frontend_without_a_mode_reads_requests_where_its_backends_do() -> None:
    text = (
        "defaults\n timeout client 9s\nfrontend fe\n bind :80\n redirect scheme https\n default_backend b\n"
        "backend b\n mode http\n http-request set-header X-A b\n server s 10.0.0.1:80\n"
    )
    found = read(text)
    assert [each[-1] for each in routes(found)] == ["b"]
    assert spec_of(found, "Route")["rules"]["request_headers"] == {"set": {"X-A": "b"}}
    assert verdict_of(found, "redirect scheme https")[0] is Verdict.DEAD


def test_a_tcp_pool_is_checked_by_http_at_the_port_of_its_check() -> None:
    found = read(
        f"{TCP}listen db\n bind :5432\n option httpchk GET /primary\n http-check expect status 200\n"
        " server a 10.0.0.1:5432 check port 8008\n server b 10.0.0.2:5432 check port 8008\n"
    )
    check = spec_of(found, "Pool")["health_check"]
    assert (check["kind"], check["path"], check["port"]) == ("http", "/primary", 8008)
    for each in found.documents:
        read_object(each)


def test_lines_of_a_section_that_no_client_reaches_are_unused_and_the_section_says_why() -> None:
    text = "listen inner\n bind abns@inner accept-proxy\n balance leastconn\n acl a path /a\n server s 10.0.0.1:80\n"
    found = read(DEFAULTS + text)
    assert {verdict_of(found, line)[0] for line in ("balance leastconn", "acl a path /a", "server s 10.0.0.1:80")} == {
        Verdict.DEAD
    }
    verdict, why = verdict_of(found, "listen inner")
    assert verdict is Verdict.DIFFERENT
    assert "port that clients can connect to" in why


def test_servers_are_asked_for_a_host_of_one_label() -> None:
    found = frontend("default_backend a", "http-request set-header Host api")
    assert spec_of(found, "Route")["rules"]["rewrite"] == {"host": "api"}


def test_a_port_on_ipv4_and_ipv6_is_one_listener() -> None:
    found = read(f"{TCP}listen mail\n bind :25\n bind :::25\n server s 10.0.0.1:25\n")
    assert [each["port"] for each in spec_of(found, "LoadBalancer")["listeners"]] == [25]


def test_a_variable_that_nobody_gave_is_asked_for_and_nothing_is_called_impossible() -> None:
    text = (
        f'{DEFAULTS}frontend fe\n bind *:$PORT\n http-request replace-path "$BASE"(/)?(.*) /\\2\n default_backend b\n'
    )
    found = read(f'{text}backend b\n server s "$HOST:80"\n')
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]
    assert {"PORT", "BASE", "HOST"} == {
        name for name in ("PORT", "BASE", "HOST") for need in found.needs if name in need
    }
    given = read(
        f'{text}backend b\n server s "$HOST:80"\n', environment={"PORT": "80", "BASE": "/b", "HOST": "10.0.0.1"}
    )
    assert not given.needs
    assert spec_of(given, "LoadBalancer")["listeners"][0]["port"] == 80


def test_a_redirect_moves_the_beginning_of_the_path() -> None:
    found = frontend(
        'http-request redirect location "https://new.example.com%[url,regsub(^/old,/new)]" if { path_beg /old }',
        "default_backend a",
    )
    moved = [each for each in routes(found) if each[2] == "/old" and each[1] == "prefix"]
    assert moved[0][-1]["prefix"] == "/new"
    assert moved[0][-1]["host"] == "new.example.com"


def test_a_redirect_by_a_map_is_one_route_for_each_entry() -> None:
    files = {"/etc/moved.map": "/a https://one.example.com/x\n/b https://two.example.com/y\n"}
    line = "http-request redirect location %[path,map(/etc/moved.map)] if { path,map(/etc/moved.map) -m found }"
    text = f"{DEFAULTS}frontend fe\n bind :80\n {line}\n default_backend b\nbackend b\n server s 10.0.0.1:80\n"
    found = read(text, files)
    targets = {each[2]: each[-1] for each in routes(found)}
    assert (targets["/a"]["host"], targets["/a"]["path"]) == ("one.example.com", "/x")
    assert (targets["/b"]["host"], targets["/b"]["path"]) == ("two.example.com", "/y")
    assert targets["/"] == "b"
    assert any("/etc/moved.map" in need for need in read(text).needs)


def test_a_script_that_nothing_calls_is_left_out_and_one_that_is_called_is_not_possible() -> None:
    quiet = read(f"global\n lua-load /etc/x.lua\n{DEFAULTS}listen a\n bind :80\n server s 10.0.0.1:80\n")
    assert verdict_of(quiet, "lua-load /etc/x.lua")[0] is Verdict.DIFFERENT
    called = read(
        f"global\n lua-load /etc/x.lua\n{DEFAULTS}listen a\n bind :80\n http-request lua.x\n server s 10.0.0.1:80\n"
    )
    assert verdict_of(called, "lua-load /etc/x.lua")[0] is Verdict.NOT_POSSIBLE
    assert verdict_of(called, "http-request lua.x")[0] is Verdict.NOT_POSSIBLE


def test_a_cache_for_all_requests_is_one_of_the_listener() -> None:
    found = read(
        f"cache c\n total-max-size 16\n max-age 30\n{DEFAULTS}listen a\n bind :80\n http-request cache-use c\n"
        " http-response cache-store c\n server s 10.0.0.1:80\n"
    )
    assert spec_of(found, "LoadBalancer")["listeners"][0]["cache"] == {"total_mb": 16, "max_age_s": 30}
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]


def test_two_servers_of_one_name_have_two_names() -> None:
    found = read(f"{TCP}listen db\n bind :5432\n server s 10.0.0.1:1\n server s 10.0.0.2:1\n")
    assert [each["name"] for each in spec_of(found, "Pool")["backends"][0]["servers"]] == ["s", "s-2"]


def test_a_condition_about_the_request_never_holds_for_its_response() -> None:
    line = "http-response set-header X-A b if { path /x }"
    kept = "http-response set-header X-B c if { var(txn.path) -m str /x }"
    found = frontend("http-request set-var(txn.path) path", line, kept, "default_backend a")
    assert verdict_of(found, line)[0] is Verdict.DEAD
    assert verdict_of(found, kept)[0] is Verdict.MAPPED
    headers = {each["spec"].get("path", "/"): each["spec"].get("rules", {}).get("response_headers")
               for each in found.documents if each["kind"] == "Route"}  # fmt: skip
    assert headers["/x"] == {"set": {"X-B": "c"}}


def test_a_rewritten_request_line_of_1_x_is_a_rewritten_prefix() -> None:
    text = (
        f"{DEFAULTS}frontend fe\n bind :80\n use_backend b if {{ path_beg /old }}\n"
        "backend b\n reqrep ^([^\\ ]*\\ /)old[/]?(.*)     \\1\\2\n server s 10.0.0.1:80\n"
    )
    found = read(text)
    (route,) = [each["spec"] for each in found.documents
                if each["kind"] == "Route" and each["spec"].get("path") == "/old"
                and each["spec"].get("path_kind", "prefix") == "prefix"]  # fmt: skip
    assert route["prefix_rewrite"] == "/"
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]


def test_a_mark_before_the_first_word_hides_no_section() -> None:
    found = read(f"\ufeffglobal\n daemon\n{DEFAULTS}listen a\n bind :80\n server s 10.0.0.1:80\n")
    assert spec_of(found, "Pool")["backends"]
    verdict, why = verdict_of(found, "global")
    assert verdict is Verdict.DIFFERENT
    assert "byte order mark" in why
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x85", "\u2028"])
def test_a_line_ends_where_haproxy_ends_it(sign: str) -> None:
    found = read(f"{DEFAULTS}listen a # one{sign}block\r\n bind :80\r\n server s 10.0.0.1:80\r\n")
    assert len(found.report) == 8
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]


def test_what_a_section_does_beside_statistics_is_said() -> None:
    answer = "http-request return status 200 if { path /up }"
    found = read(f"{DEFAULTS}listen stats\n bind :81\n stats uri /\n {answer}\n")
    assert verdict_of(found, answer)[0] is Verdict.DIFFERENT
    assert not found.documents
    moved = "http-request redirect scheme https if !{ ssl_fc }"
    both = read(f"{DEFAULTS}frontend web\n bind :80\n stats uri /stats\n {moved}\n")
    assert verdict_of(both, moved)[0] is Verdict.MAPPED
    assert [each[-1] for each in routes(both)] == [{"code": 302, "keep_query": True, "scheme": "https"}]


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("option accept-invalid-http-request", "Nodes read HTTP strictly"),
        ("option accept-invalid-http-response", "Nodes read HTTP strictly"),
        ("option checkcache", "passed on with their cookies"),
    ],
)
def test_options_by_which_other_answers_come_are_said(option: str, why: str) -> None:
    found = read(f"{DEFAULTS}listen a\n bind :80\n {option}\n server s 10.0.0.1:80\n")
    verdict, said = verdict_of(found, option)
    assert verdict is Verdict.DIFFERENT
    assert why in said
    ignored = read(f"{TCP}listen a\n bind :80\n {option}\n server s 10.0.0.1:80\n")
    assert verdict_of(ignored, option)[0] is Verdict.DEAD


def test_a_port_without_a_backend_is_said_at_its_line() -> None:
    found = read(f"{TCP}frontend a\n bind :25\n use_backend gone if {{ src 192.0.2.0/24 }}\n")
    assert verdict_of(found, "bind :25")[0] is Verdict.DIFFERENT


def test_a_quote_that_does_not_end_matters_where_traffic_does() -> None:
    found = read(
        f"{DEFAULTS}listen a\n bind :80\n stats realm Acme's\n acl shop path_beg '/shop\n server s 10.0.0.1:80\n"
    )
    assert verdict_of(found, "stats realm Acme's")[0] is Verdict.DIFFERENT
    assert verdict_of(found, "acl shop path_beg '/shop")[0] is Verdict.NOT_POSSIBLE


def test_a_host_with_a_port_is_that_host() -> None:
    line = "use_backend b if { hdr(host) -i a.acme.example:8080 }"
    found = frontend(line, "default_backend a", bind="bind :8080")
    assert [each[-1] for each in routes(found) if each[0] == "a.acme.example"] == ["b"]
    verdict, why = verdict_of(found, line)
    assert verdict is Verdict.DIFFERENT
    assert "any port" in why
    both = line.replace("a.acme.example:8080", "a.acme.example a.acme.example:8080")
    assert verdict_of(frontend(both, "default_backend a"), both)[0] is Verdict.MAPPED


@pytest.mark.parametrize("mode", ["tcp", "http"])
def test_a_port_that_expects_the_proxy_protocol_by_a_rule_does_so(mode: str) -> None:
    line = "tcp-request connection expect-proxy layer4"
    text = f"defaults\n mode {mode}\nlisten a\n bind :80\n {line}\n server s 10.0.0.1:80\n"
    (listener,) = spec_of(read(text), "LoadBalancer")["listeners"]
    assert listener["client_address"]["proxy_protocol_from"]
    assert verdict_of(read(text), line)[0] is Verdict.MAPPED
    some = f"{line} if {{ src 192.0.2.0/24 }}"
    assert verdict_of(read(text.replace(line, some)), some)[0] is Verdict.DIFFERENT


def test_paths_that_haproxy_would_put_in_order_are_said() -> None:
    line = "http-request normalize-uri path-merge-slashes"
    assert verdict_of(frontend(line, "default_backend a"), line)[0] is Verdict.DIFFERENT


def test_the_order_of_a_queue_is_said_to_differ() -> None:
    line = "http-request set-priority-class int(-10) if { path_beg /pay }"
    assert verdict_of(frontend(line, "default_backend a"), line)[0] is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("count", "verdict"), [("2", Verdict.MAPPED), ("12", Verdict.DIFFERENT), ("int(2)", Verdict.NOT_POSSIBLE)]
)
def test_the_retries_of_some_requests_become_those_of_a_route(count: str, verdict: Verdict) -> None:
    line = f"http-request set-retries {count} if {{ path_beg /pay }}"
    front = "frontend f\n mode http\n bind :80\n default_backend b\n"
    text = f"{front}backend b\n mode http\n {line}\n server s 192.0.2.1:80\n"
    assert verdict_of(read(text), line)[0] is verdict


@pytest.mark.parametrize(
    "line", ["{servers}", "{{ servers }}", "%(servers)s", "{% for each in servers %}", "<% it %>", "[...]"]
)
def test_what_a_template_fills_in_is_called_so(line: str) -> None:
    verdict, why = verdict_of(frontend(line, "default_backend a"), line)
    assert verdict is Verdict.NOT_POSSIBLE
    assert why == "A template fills this in; import the file that comes of it, as HAProxy does not start with this one."


def test_an_acl_that_is_not_there_is_said_to_stop_haproxy() -> None:
    line = "use_backend b if nobody"
    verdict, why = verdict_of(frontend(line, "default_backend a"), line)
    assert verdict is Verdict.NOT_POSSIBLE
    assert "no acl nobody, so HAProxy does not start" in why
