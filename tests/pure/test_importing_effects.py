"""Reading haproxy.cfg: what a line does besides what it seems to say is mapped, or said, and never lost."""

from __future__ import annotations

from typing import Any

import pytest

from apps.importing.contract import Import
from apps.importing.verdicts import Verdict
from tests.pure.test_importing import BACKENDS, DEFAULTS, frontend, read, routes, rules_of, spec_of, verdict_of
from tests.pure.test_importing_sections import TCP

TWO = "backend a\n server s 10.0.0.1:80\nbackend b\n server s 10.0.0.2:80\n"


def tcp(*lines: str, bind: str = "bind :443", more: str = "") -> Import:
    body = "".join(f" {line}\n" for line in (bind, *lines))
    return read(f"{TCP}frontend fe\n{body}{TWO}{more}")


def listeners_of(found: Import, name: str = "fe") -> list[dict[str, Any]]:
    listeners: list[dict[str, Any]] = spec_of(found, "LoadBalancer", name)["listeners"]
    return listeners


def route_to(found: Import, pool: str) -> dict[str, Any]:
    (route,) = [each["spec"] for each in found.documents if each["kind"] == "Route"
                and each["spec"]["action"].get("pools") == [{"pool": pool}]]  # fmt: skip
    return dict(route)


@pytest.mark.parametrize("first", [80, 443])
def test_each_port_of_a_tcp_section_has_the_pool_that_its_rules_choose(first: int) -> None:
    other = 523 - first
    found = tcp(
        f"use_backend a if {{ dst_port {first} }}", f"use_backend b if {{ dst_port {other} }}", bind="bind :80,:443"
    )
    pools = {each["port"]: each["default_pool"] for each in listeners_of(found)}
    assert pools == {first: "a", other: "b"}


def test_ports_that_rules_tell_apart_are_load_balancers_of_their_own() -> None:
    found = frontend("use_backend a if { dst_port 81 }", "default_backend b", bind="bind :80,:81,:82")
    assert [each["port"] for each in listeners_of(found)] == [80, 82]
    assert [each["port"] for each in listeners_of(found, "fe-81")] == [81]
    assert route_to(found, "a")["load_balancer"] == "fe-81"
    assert route_to(found, "b")["load_balancer"] == "fe"
    assert {line.verdict for line in found.report if line.section == "frontend fe"} == {Verdict.MAPPED}


@pytest.mark.parametrize("match", ["-m end example.com", r"-m reg ^(.+\.)?example\.com$"])
def test_a_domain_in_tls_names_is_one_of_them(match: str) -> None:
    found = tcp(f"use_backend a if {{ req.ssl_sni {match} }}", "default_backend b")
    names = [each["hostname"] for each in listeners_of(found)[0]["sni_routes"]]
    assert names == ["*.example.com", "example.com"]


def test_a_refusal_keeps_its_own_text() -> None:
    found = frontend('http-request deny deny_status 429 content-type text/html string "<b>no</b>"', "default_backend a")
    assert routes(found)[0][-1]["fixed_response"] == {
        "status": 429, "content_type": "text/html", "body": "<b>no</b>"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["http-request set-header X-Forwarded-Proto https"], True),
        (["http-request set-header X-Forwarded-Port 443"], True),
        (["http-request set-header X-Forwarded-Port 80"], False),
        (["reqadd X-Forwarded-Proto:\\ https"], True),
        (["http-request set-header X-Forwarded-Proto http"], False),
        (["http-request set-header X-Forwarded-Proto https if { ssl_fc }"], False),
    ],
)
def test_a_scheme_or_port_that_servers_were_told_otherwise_is_said(lines: list[str], said: bool) -> None:
    found = frontend(*lines, "default_backend a")
    assert (verdict_of(found, lines[0])[0] is Verdict.DIFFERENT) is said
    assert "rules" not in route_to(found, "a")


def test_a_scheme_that_servers_are_told_is_that_of_requests_which_reach_them() -> None:
    line = "http-request set-header X-Forwarded-Proto https"
    found = frontend(line, "redirect scheme https unless { ssl_fc }", "default_backend a",
                     bind="bind :80\n bind :443 ssl crt /a.pem")  # fmt: skip
    assert verdict_of(found, line)[0] is Verdict.MAPPED


def test_http3_of_a_port_is_that_of_its_listener() -> None:
    bind = "bind :443 ssl crt /a.pem alpn h2\n bind quic4@:443 ssl crt /a.pem alpn h3"
    found = frontend("default_backend a", bind=bind)
    assert [(each["port"], each["tls"]) for each in listeners_of(found)] == [(443, {"http3": True})]
    alone = frontend("default_backend a", bind="bind quic4@:443 ssl crt /a.pem")
    assert "connections of TCP as well" in verdict_of(alone, "bind quic4@:443 ssl crt /a.pem")[1]


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("ssl-min-ver TLSv1.0", "oldest version of TLS"),
        ("ssl-max-ver TLSv1.2", "may use TLS 1.3"),
        ("no-tlsv13", "may use TLS 1.3"),
    ],
)
def test_versions_of_tls_that_are_others_are_said(option: str, why: str) -> None:
    bind = f"bind :443 ssl crt /a.pem {option}"
    assert why in verdict_of(frontend("default_backend a", bind=bind), bind)[1]


@pytest.mark.parametrize(
    ("option", "verdict"),
    [
        ("", Verdict.MAPPED),
        (" except 127.0.0.0/8", Verdict.MAPPED),
        (" except 10.0.0.0/8", Verdict.DIFFERENT),
        (" if-none", Verdict.DIFFERENT),
        (" header X-Client-IP", Verdict.DIFFERENT),
        (" header X_Client", Verdict.DIFFERENT),
        (" header X-Real-IP", Verdict.MAPPED),
    ],
)
def test_for_whom_x_forwarded_for_does_not_hold_is_said(option: str, verdict: Verdict) -> None:
    found = frontend(f"option forwardfor{option}", "default_backend a")
    assert verdict_of(found, f"option forwardfor{option}")[0] is verdict


@pytest.mark.parametrize(("name", "said"), [("X-Client-IP", {"X-Client-IP": "{client_address}"}), ("X_Client", {})])
def test_servers_get_the_client_under_the_name_that_they_know(name: str, said: dict[str, str]) -> None:
    found = frontend(f"option forwardfor header {name}", "default_backend a")
    assert rules_of(found, route_to(found, "a")).get("request_headers", {}).get("set", {}) == said


def test_an_id_that_servers_get_is_sent_under_its_name() -> None:
    found = frontend("unique-id-format %ci", "unique-id-header X-Trace", "default_backend a")
    assert rules_of(found, route_to(found, "a"))["request_headers"] == {"set": {"X-Trace": "{request_id}"}}
    assert verdict_of(found, "unique-id-header X-Trace")[0] is Verdict.DIFFERENT
    without = frontend("unique-id-header X-Trace", "default_backend a")
    assert verdict_of(without, "unique-id-header X-Trace")[0] is Verdict.DEAD


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [("http-keep-alive", "httpclose", "none"), ("httpclose", "http-keep-alive", "both")],
)
def test_the_last_of_the_options_about_connections_counts(first: str, second: str, kept: str) -> None:
    found = frontend(f"option {first}", f"option {second}", "default_backend a")
    assert listeners_of(found)[0]["connections"]["keep_alive"] == kept


def test_connections_that_a_backend_closes_are_said_where_its_frontend_keeps_them() -> None:
    text = (
        f"{DEFAULTS}frontend fe\n bind :80\n default_backend a\nbackend a\n option httpclose\n server s 10.0.0.1:80\n"
    )
    assert verdict_of(read(text), "option httpclose")[0] is Verdict.DIFFERENT
    both = text.replace("bind :80", "bind :80\n option forceclose")
    assert verdict_of(read(both), "option httpclose")[0] is Verdict.MAPPED


def test_pages_of_a_backend_are_those_of_its_routes() -> None:
    page = "HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/html\r\n\r\n<b>back soon</b>"
    text = (
        f"{DEFAULTS}frontend fe\n bind :80\n use_backend a if {{ path /a }}\n default_backend b\n"
        "backend a\n errorfile 503 /503.http\n server s 10.0.0.1:80\nbackend b\n server s 10.0.0.2:80\n"
    )
    found = read(text, {"/503.http": page})
    assert rules_of(found, route_to(found, "a"))["error_pages"]["body"] == "<b>back soon</b>"
    assert "rules" not in route_to(found, "b")


def test_a_disabled_section_is_dead_and_one_that_is_enabled_again_is_not() -> None:
    section = "frontend fe\n bind :80\n disabled\n default_backend a\n"
    assert {line.verdict for line in read(DEFAULTS + section + TWO).report if line.section == "frontend fe"} == {
        Verdict.DEAD
    }
    again = section.replace("disabled", "disabled\n enabled")
    assert listeners_of(read(DEFAULTS + again + TWO))


def test_the_first_label_of_a_host_is_no_whole_host() -> None:
    found = frontend(
        "use_backend a if { hdr(host),field(1,.) -m str shop }", "use_backend b if { hdr(host) x.example }"
    )
    assert {each[0] for each in routes(found) if each[-1] == "a"} == {"shop.x.example"}
    known = frontend("use_backend a if { hdr(host),regsub(^www\\.,) -m str shop.example }")
    assert {each[0] for each in routes(known) if each[-1] == "a"} == {"shop.example", "www.shop.example"}
    odd = frontend("use_backend a if { hdr(host),regsub(^.*-,) -m str shop.example }")
    assert verdict_of(odd, "use_backend a if { hdr(host),regsub(^.*-,) -m str shop.example }")[0] is (
        Verdict.NOT_POSSIBLE
    )


def test_a_name_that_no_backend_has_ends_the_rules() -> None:
    line = "use_backend %[path,word(1,/)]"
    found = frontend(line, "use_backend b if { method POST }", "default_backend a")
    assert {each[2]: each[-1] for each in routes(found) if not each[3]} == {
        "/b": "b", "/c": "c", "/d": "d", "/": "a"
    }  # fmt: skip
    assert not [each for each in routes(found) if each[3]]
    none = read(f"{DEFAULTS}frontend fe\n bind :80\n use_backend %[req.hdr(host),lower]\n")
    assert verdict_of(none, "use_backend %[req.hdr(host),lower]")[0] is Verdict.DIFFERENT


def test_a_question_about_the_query_as_well_says_that_it_is_not_looked_at() -> None:
    found = frontend("use_backend a if { url_sub login }", "use_backend b if { url_beg /b }", "default_backend c")
    assert "without their query" in verdict_of(found, "use_backend a if { url_sub login }")[1]
    assert verdict_of(found, "use_backend b if { url_beg /b }")[0] is Verdict.MAPPED


def test_the_script_that_proves_hostnames_is_what_nodes_do() -> None:
    line = "http-request use-service lua.acme-http01 if { path_beg /.well-known/acme-challenge/ }"
    text = f"global\n lua-load /etc/acme.lua\n{DEFAULTS}frontend fe\n bind :80\n {line}\n default_backend a\n{BACKENDS}"
    assert verdict_of(read(text), line)[0] is Verdict.DIFFERENT
    assert verdict_of(read(text), "lua-load /etc/acme.lua")[0] is Verdict.DIFFERENT
    other = text.replace("lua.acme-http01", "lua.captcha")
    verdict, why = verdict_of(read(other), line.replace("lua.acme-http01", "lua.captcha"))
    assert verdict is Verdict.NOT_POSSIBLE
    assert "no Lua" in why


def test_a_header_that_only_gets_another_spelling_stays() -> None:
    line = "reqrep ^(X-Amz-Date:)(.*)$ x-amz-date:\\2"
    assert verdict_of(frontend(line, "default_backend a"), line)[0] is Verdict.DIFFERENT


def test_a_variable_with_one_value_is_that_value() -> None:
    found = frontend(
        "acl www hdr_beg(host) -i www.",
        "http-request set-var(txn.apex) req.hdr(host),regsub(^www\\.,) if www",
        "http-request set-var(txn.site) str(main)",
        "http-request set-header X-Site %[var(txn.site)]",
        "http-request redirect location https://%[var(txn.apex)]%[path]?%[query] if www",
        "use_backend b if { hdr(host) www.shop.example }",
        "default_backend a",
    )
    (moved,) = [each[-1] for each in routes(found) if each[0] == "www.shop.example"]
    assert (moved["host"], moved["keep_query"]) == ("shop.example", True)
    assert rules_of(found, route_to(found, "a"))["request_headers"] == {"set": {"X-Site": "main"}}


def test_a_variable_that_is_set_for_some_requests_alone_has_no_value_for_others() -> None:
    line = "http-request set-header X-Site %[var(txn.site)]"
    found = frontend("http-request set-var(txn.site) str(main) if { path_beg /a }", line, "default_backend a")
    assert verdict_of(found, line)[0] is Verdict.NOT_POSSIBLE


def test_a_duration_is_read_up_to_the_letter_that_haproxy_reads() -> None:
    found = frontend("timeout client 15min", "default_backend a")
    assert listeners_of(found)[0]["connections"]["client_timeout_ms"] == 900_000


def test_a_time_without_limit_is_the_longest_and_no_number_of_connections_is_none() -> None:
    found = frontend("timeout client 0", "maxconn 0", "default_backend a")
    assert listeners_of(found)[0]["connections"] == {"client_timeout_ms": 3_600_000}
    assert verdict_of(found, "timeout client 0")[0] is Verdict.DIFFERENT


def test_an_address_of_its_own_machine_is_no_listener() -> None:
    found = frontend("default_backend a", bind="bind 127.0.0.1:81\n bind :80")
    assert [each["port"] for each in listeners_of(found)] == [80]
    assert verdict_of(found, "bind 127.0.0.1:81")[0] is Verdict.DIFFERENT
    alone = frontend("default_backend a", bind="bind 127.0.0.1:81")
    assert not [each for each in alone.documents if each["kind"] == "LoadBalancer"]


@pytest.mark.parametrize("question", ["hdr_dom(host) -i shop", "hdr_end(host) -i .internal", "hdr(host) 10.0.0.1:80"])
def test_a_host_that_no_route_can_have_is_said_and_its_line_is_not_dead(question: str) -> None:
    line = f"use_backend b if {{ {question} }}"
    assert verdict_of(frontend(line, "default_backend a"), line)[0] is Verdict.DIFFERENT


def test_a_block_that_asks_for_what_nobody_gave_says_so() -> None:
    text = f'{DEFAULTS}frontend fe\n bind :80\n.if streq("$SCHEME",https)\n bind :443 ssl crt /a.pem\n.endif\n'
    found = read(f"{text} default_backend a\n{BACKENDS}")
    assert verdict_of(found, '.if streq("$SCHEME",https)')[0] is Verdict.DIFFERENT
    assert any("SCHEME" in need for need in found.needs)
    given = read(f"{text} default_backend a\n{BACKENDS}", environment={"SCHEME": "https"})
    assert [each["port"] for each in listeners_of(given)] == [80, 443]
    defined = ".if defined(SITE)\n.notice x\n.endif\n" + DEFAULTS
    assert "not set" in verdict_of(read(defined), ".if defined(SITE)")[1]


def test_probes_beside_statistics_are_said() -> None:
    found = read(f"{DEFAULTS}listen stats\n bind :81\n stats enable\n monitor-uri /up\n")
    assert verdict_of(found, "monitor-uri /up")[0] is Verdict.DIFFERENT


def test_a_forward_proxy_is_not_possible() -> None:
    assert verdict_of(frontend("option http_proxy", "default_backend a"), "option http_proxy")[0] is (
        Verdict.NOT_POSSIBLE
    )


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("compression algo gzip", Verdict.MAPPED),
        ("compression algo deflate", Verdict.DIFFERENT),
        ("compression offload", Verdict.DIFFERENT),
    ],
)
def test_compression_of_another_kind_is_said(line: str, verdict: Verdict) -> None:
    assert verdict_of(frontend(line, "default_backend a"), line)[0] is verdict


def test_options_of_a_list_of_certificates_are_said() -> None:
    bind = "bind :443 ssl crt-list /c.txt"
    text = f"{DEFAULTS}frontend fe\n {bind}\n default_backend a\n{BACKENDS}"
    assert (
        "options of the listener alone"
        in verdict_of(read(text, {"/c.txt": "/a.pem [verify required] a.example"}), bind)[1]
    )
    assert "options of the listener alone" not in verdict_of(read(text, {"/c.txt": "/a.pem"}), bind)[1]


def test_a_prefix_is_rewritten_where_another_pattern_comes_first() -> None:
    text = (
        f"{DEFAULTS}frontend fe\n bind :80\n use_backend b if {{ path_reg ^/[^/]+/[^/]+\\.git }}\n"
        " use_backend a if { path_beg /api }\n default_backend c\n"
        "backend a\n http-request set-path %[path,regsub(^/api,)] if { path_beg /api } !{ path_beg /api/v1 }\n"
        f" server s 10.0.0.1:80\n{BACKENDS.replace('backend a', 'backend z')}"
    )
    rewritten = [each["spec"] for each in read(text).documents if each["kind"] == "Route"
                 and each["spec"].get("rules", {}).get("rewrite")]  # fmt: skip
    (line,) = [each for each in read(text).report if "set-path" in each.text]
    assert "whole segments" in " ".join(line.reasons)
    assert [(each["path"], each["rules"]["rewrite"]) for each in rewritten] == [
        ("/api(/.*)?", {"path_regex": "/api/?(.*)", "path_replacement": "/\\1"})
    ]


def test_a_backend_without_mode_is_one_of_http_where_requests_go_to_it() -> None:
    front = "defaults\n timeout client 9s\nfrontend fe\n mode http\n bind :80\n default_backend a\n"
    text = f"{front}backend a\n server s 10.0.0.1:80\n"
    found = read(text)
    assert spec_of(found, "Pool", "a")["protocol"] == "http"
    assert verdict_of(found, "backend a")[0] is Verdict.DIFFERENT


def test_a_cache_of_a_backend_is_said_and_vary_is_what_nodes_do() -> None:
    use, store = "http-request cache-use c", "http-response cache-store c"
    text = f"cache c\n process-vary on\n max-secondary-entries 9\n{DEFAULTS}frontend fe\n bind :80\n"
    front = read(f"{text} {use}\n {store}\n default_backend a\n{BACKENDS}")
    assert verdict_of(front, "process-vary on")[0] is Verdict.MAPPED
    assert verdict_of(front, "max-secondary-entries 9")[0] is Verdict.DIFFERENT
    back = read(f"{text} default_backend a\nbackend a\n {use}\n {store}\n server s 10.0.0.1:80\n")
    assert {verdict_of(back, each)[0] for each in (use, store)} == {Verdict.DIFFERENT}


@pytest.mark.parametrize(
    ("condition", "closed"),
    [
        ("unless { ssl_c_s_dn(cn) -m str alice }", True),
        ("if !{ var(txn.allowed) -m bool } { path_beg /admin }", True),
        ("if { ssl_c_s_dn(cn) -m str mallory }", False),
        ("if { nbsrv(a) lt 2 }", False),
        ("unless { src -f /etc/office.lst }", False),
    ],
)
def test_whoever_must_show_what_nodes_cannot_ask_is_refused(condition: str, closed: bool) -> None:
    line = f"http-request deny {condition}"
    found = frontend(line, "default_backend a")
    refused = [each for each in routes(found) if "fixed_response" in str(each[-1])]
    assert bool(refused) is closed
    assert ("is refused" in verdict_of(found, line)[1]) is closed
    if "/admin" in condition:
        assert "/" not in [each[2] for each in refused]


@pytest.mark.parametrize("name", ["X-Forwarded-Ssl", "X-Forwarded-Uri", "X-Forwarded-Prefix"])
def test_headers_that_nodes_do_not_set_themselves_are_set_by_rules(name: str) -> None:
    for line in (f"http-request set-header {name} on", f"reqadd {name}:\\ on"):
        found = frontend(line, "default_backend a")
        assert verdict_of(found, line)[0] in {Verdict.MAPPED, Verdict.DIFFERENT}
        assert f"'{name}': 'on'" in str(found.documents)
    line = f"http-request del-header {name}"
    assert f"'{name}'" in str(frontend(line, "default_backend a").documents)


def test_a_header_that_nodes_own_is_said() -> None:
    line = "http-request set-header Forwarded for=192.0.2.1"
    verdict, why = verdict_of(frontend(line, "default_backend a"), line)
    assert verdict is Verdict.DIFFERENT
    assert "Nodes set no Forwarded" in why


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("%[capture.req.uri]", "{uri}"),
        ("%[path]", "{path}"),
        ("%[req.fhdr(CF-Connecting-IP)]", "{header:CF-Connecting-IP}"),
        ("a-%[req.hdr(x-b)]", "a-{header:x-b}"),
        ("%[req.hdr(X-Forwarded-For)]", None),
    ],
)
def test_values_of_headers_come_from_the_request(value: str, text: str | None) -> None:
    line = f"http-request set-header X-Told {value}"
    found = frontend(line, "default_backend a")
    assert (f"'X-Told': '{text}'" in str(found.documents)) == (text is not None)
    wanted = Verdict.NOT_POSSIBLE if text is None else Verdict.DIFFERENT if ".hdr" in value else Verdict.MAPPED
    assert verdict_of(found, line)[0] is wanted


def test_an_answer_has_its_headers_with_our_variables() -> None:
    line = 'http-request return status 200 content-type text/plain string ok hdr X-Path "%[path]" if { path /a }'
    assert "'X-Path': '{path}'" in str(frontend(line, "default_backend a").documents)


def test_a_slash_is_put_behind_a_whole_path() -> None:
    found = frontend("redirect scheme https append-slash if { path /shop }", "default_backend a")
    (moved,) = [each[-1] for each in routes(found) if each[2] == "/shop"]
    assert (moved["scheme"], moved["path"]) == ("https", "/shop/")


def test_a_backend_of_http_that_gets_connections_as_well_is_two_pools() -> None:
    text = (
        f"{DEFAULTS}frontend web\n bind :80\n default_backend a\nfrontend fe\n mode tcp\n bind :443\n"
        " use_backend b if { req.ssl_sni b.example }\n default_backend a\n"
        "backend a\n server s 10.0.0.1:80\nbackend b\n mode tcp\n server s 10.0.0.2:80\n"
    )
    found = read(text)
    assert listeners_of(found)[0]["default_pool"] == "a-tcp"
    assert (spec_of(found, "Pool", "a")["protocol"], spec_of(found, "Pool", "a-tcp")["protocol"]) == ("http", "tcp")
    assert verdict_of(found, "backend a")[0] is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (r"http-response replace-header Location ^http://app:8080/(.*) /\1", ("http://app:8080/", "/")),
        (r"http-response replace-header Location http://(.*) https://\1", ("http://", "https://")),
        (r"rspirep ^Location:\ http://app\.internal/(.*) Location:\ https://www.acme.example/\1",
         ("http://app.internal/", "https://www.acme.example/")),
        (r"http-response replace-header Location ^http://(.*)/a https://\1/b", None),
        (r"http-response replace-header X-Other ^http://(.*) https://\1", None),
    ],
)  # fmt: skip
def test_a_location_of_servers_begins_otherwise(line: str, said: tuple[str, str] | None) -> None:
    found = frontend(line, "default_backend a")
    verdict = verdict_of(found, line)[0]
    if said is None:
        assert verdict is Verdict.NOT_POSSIBLE
    else:
        assert verdict is (Verdict.MAPPED if "^" in line else Verdict.DIFFERENT)
        block = {"location_prefix": said[0], "location_replacement": said[1]}
        assert f"'response_rewrite': {block}" in str(found.documents)


@pytest.mark.parametrize(
    "line",
    [
        r'http-response replace-header Set-Cookie (.*) "\1; Secure"',
        r"http-response replace-header Set-Cookie ^(.*) \1;\ secure",
        r"rspirep ^Set-Cookie:\ (.*) Set-Cookie:\ \1;\ Secure",
    ],
)
def test_cookies_of_servers_become_secure(line: str) -> None:
    found = frontend(line, "default_backend a")
    assert verdict_of(found, line)[0] is Verdict.MAPPED
    assert "'response_rewrite': {'secure_cookies': True}" in str(found.documents)
