"""Reading haproxy.cfg: servers and their checks."""

from __future__ import annotations

from typing import Any

import pytest

from apps.definitions.reading.documents import read_object
from apps.importing.contract import Import
from apps.importing.verdicts import Verdict
from tests.pure.test_importing import DEFAULTS, read, routes, spec_of, verdict_of


def pool(*lines: str) -> Import:
    body = "".join(f" {line}\n" for line in lines)
    return read(f"{DEFAULTS}listen web\n bind :80\n{body}")


def backend_of(found: Import, name: str = "web") -> dict[str, Any]:
    (backend,) = spec_of(found, "Pool", name)["backends"]
    return dict(backend)


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("server s 10.0.0.1:80 check on-marked-down shutdown-sessions", "Connections that are open stay"),
        ("server s 10.0.0.1:80 check check-ssl", "Checks speak no TLS"),
        ("server s 10.0.0.1:80 check ssl verify none no-check-ssl", "Checks speak TLS"),
        ("server s 10.0.0.1:80 check ssl verify none port 81 check-ssl", "Checks speak no TLS"),
        ("server s 10.0.0.1:80 check ssl verify none port 81", ""),
        ("server s 10.0.0.1:80 check ssl verify none", ""),
        ("server s 10.0.0.1:80 ssl verify none sni req.hdr(host)", ""),
        ("server s 10.0.0.1:80 ssl verify none sni ssl_fc_sni", "the host as the TLS name"),
        ("server s 10.0.0.1:+1000", "none that counts from that of the client"),
    ],
)
def test_what_servers_or_their_checks_do_otherwise_is_said(server: str, why: str) -> None:
    verdict, said = verdict_of(pool(server), server)
    assert why in said
    assert (verdict is Verdict.MAPPED) == (why == "")


def test_a_server_has_the_name_of_its_container() -> None:
    found = pool("server s shop_api_1:8080")
    assert backend_of(found)["servers"][0]["address"] == "shop_api_1"
    assert not found.needs


@pytest.mark.parametrize(("written", "is_meant"), [("0.0.0.0:80", "127.0.0.1"), (":::80", "::1")])
def test_a_server_at_no_address_is_one_of_the_machine_itself(written: str, is_meant: str) -> None:
    found = pool(f"server s {written}")
    assert backend_of(found)["servers"][0]["address"] == is_meant
    assert found.needs == (f"Where the server {written} is (--map-servers {written}=HOST:PORT).",)


def test_servers_that_are_reached_otherwise_than_the_first_are_said() -> None:
    second = "server b 10.0.0.2:443 ssl verify none send-proxy-v2"
    found = pool("server a 10.0.0.1:443 ssl verify required ca-file /ca.pem send-proxy-v2", second)
    verdict, why = verdict_of(found, second)
    assert verdict is Verdict.DIFFERENT
    assert "the same verify" in why
    assert "send-proxy-v2" not in why


def test_a_check_of_1_x_keeps_its_headers() -> None:
    found = pool("option httpchk GET /?ping HTTP/1.1\\r\\nHost:\\ api\\r\\nX-Key:\\ foo", "server s 10.0.0.1:80 check")
    check = spec_of(found, "Pool", "web")["health_check"]
    assert (check["path"], check["host"], check["headers"]) == ("/?ping", "api", {"X-Key": "foo"})


def test_a_check_connects_to_the_port_that_it_names() -> None:
    line = "http-check connect port 81"
    found = pool("option httpchk", line, "http-check send meth GET uri /up", "server s 10.0.0.1:80 check")
    assert spec_of(found, "Pool", "web")["health_check"]["port"] == 81
    assert verdict_of(found, line)[0] is Verdict.MAPPED
    encrypted = pool("option httpchk", f"{line} ssl", "server s 10.0.0.1:80 check")
    assert verdict_of(encrypted, f"{line} ssl")[0] is Verdict.DIFFERENT


def test_of_two_kinds_of_checks_the_last_counts() -> None:
    found = pool("option mysql-check user root", "option httpchk", "server s 10.0.0.1:80 check")
    assert spec_of(found, "Pool", "web")["health_check"]["kind"] == "http"
    verdict, why = verdict_of(found, "option mysql-check user root")
    assert verdict is Verdict.DEAD
    assert "below it" in why


@pytest.mark.parametrize(
    ("target", "source"),
    [("web.internal:8080", "dns://web.internal:8080"), ("_http._tcp.web.internal", "srv://_http._tcp.web.internal")],
)
def test_a_template_is_servers_that_are_found_by_their_name(target: str, source: str) -> None:
    line = f"server-template web 1-5 {target} check resolvers dns"
    found = pool(line)
    assert backend_of(found) == {"region": "europe-west1", "servers_from": source}
    assert verdict_of(found, line)[0] is Verdict.DIFFERENT
    for each in found.documents:
        read_object(each)


def test_a_template_beside_other_servers_is_one_server() -> None:
    found = pool("server-template web 2 web.internal:80", "server s 10.0.0.1:80")
    assert [each["address"] for each in backend_of(found)["servers"]] == ["web.internal", "10.0.0.1"]


def test_servers_that_no_request_reaches_are_dead() -> None:
    found = pool("http-request return status 404", "option httpchk", "server s 10.0.0.1:80 check")
    for line in ("option httpchk", "server s 10.0.0.1:80 check"):
        assert verdict_of(found, line)[0] is Verdict.DEAD


def test_a_timeout_of_zero_is_none_and_becomes_the_longest() -> None:
    found = pool("timeout server 0", "server s 10.0.0.1:80")
    assert spec_of(found, "Pool", "web")["server_timeout_ms"] == 3_600_000
    verdict, why = verdict_of(found, "timeout server 0")
    assert verdict is Verdict.DIFFERENT
    assert "longest" in why


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("option persist", Verdict.DIFFERENT),
        ("persist rdp-cookie", Verdict.DIFFERENT),
        ("ignore-persist if { path_end .css }", Verdict.DIFFERENT),
        ("option prefer-last-server", Verdict.DIFFERENT),
        ("option abortonclose", Verdict.DIFFERENT),
        ("option tcpka", Verdict.NODE_SETTING),
        ("stick on src", Verdict.MAPPED),
        ("stick on src if { path_beg /a }", Verdict.DIFFERENT),
        ("stick on src table other", Verdict.DIFFERENT),
    ],
)
def test_what_clients_keep_of_their_server_is_said(line: str, verdict: Verdict) -> None:
    assert verdict_of(pool("stick-table type ip size 1m", line, "server s 10.0.0.1:80"), line)[0] is verdict


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("cookie LB insert indirect", "LB"),
        ("cookie JSESSIONID prefix", "JSESSIONID"),
        ("cookie JSESSIONID", None),
        ("cookie JSESSIONID rewrite", None),
        ("appsession JSESSIONID len 32 timeout 1h", None),
    ],
)
def test_a_cookie_of_the_servers_is_not_replaced_by_one_of_the_load_balancer(line: str, name: str | None) -> None:
    found = pool(line, "server s 10.0.0.1:80 cookie s")
    assert spec_of(found, "Pool", "web")["persistence"].get("cookie") == name
    assert ("beside that of the servers" in verdict_of(found, line)[1]) is (name is None)


def test_beside_a_cookie_a_session_of_the_servers_is_not_learned() -> None:
    session = "appsession JSESSIONID len 52 timeout 3h"
    found = pool("cookie LB insert indirect", session, "server s 10.0.0.1:80 cookie s")
    assert spec_of(found, "Pool", "web")["persistence"]["cookie"] == "LB"
    assert verdict_of(found, session) == (Verdict.DIFFERENT, "Clients are known again by the other cookie alone.")


def test_of_a_cookie_and_a_table_the_cookie_counts() -> None:
    found = pool("cookie LB insert", "stick-table type ip size 1m", "stick on src", "server s 10.0.0.1:80 cookie s")
    assert spec_of(found, "Pool", "web")["persistence"]["by"] == "cookie"
    assert verdict_of(found, "stick on src")[0] is Verdict.DIFFERENT


def test_an_address_without_servers_is_the_server() -> None:
    found = pool("dispatch 10.0.0.3:80")
    assert [each["address"] for each in backend_of(found)["servers"]] == ["10.0.0.3"]
    both = pool("dispatch 10.0.0.3:80", "server s 10.0.0.1:80", "use-server s if { path /s }")
    assert verdict_of(both, "dispatch 10.0.0.3:80")[0] is Verdict.NOT_POSSIBLE
    assert verdict_of(both, "use-server s if { path /s }")[0] is Verdict.MAPPED


def test_a_server_that_a_rule_chooses_is_a_pool_and_others_stand_in_while_it_fails_checks() -> None:
    lines = ("server a 10.0.0.1:80 check", "server b 10.0.0.2:80", "server c 10.0.0.3:80")
    found = pool(*lines, "use-server a if { path /a }", "use-server b if { path /b }", "use-server d if { path /d }")
    servers = {
        each["name"]: [(one["name"], one.get("backup", False)) for one in backend_of(found, each["name"])["servers"]]
        for each in found.documents
        if each["kind"] == "Pool"
    }
    assert servers["web-a"] == [("a", False), ("b", True), ("c", True)]
    assert servers["web-b"] == [("b", False)]
    assert servers["web"] == [("a", False), ("b", False), ("c", False)]
    assert {(route[2], route[4]) for route in routes(found)} == {("/a", "web-a"), ("/b", "web-b"), ("/", "web")}
    assert verdict_of(found, "use-server d if { path /d }")[0] is Verdict.NOT_POSSIBLE


def test_rules_of_a_backend_that_a_map_names_choose_its_servers() -> None:
    front = "frontend fe\n bind :80\n use_backend %[hdr(host),lower,map(hosts.map)]\n"
    back = "backend shop\n use-server b if { path /b }\n server a 10.0.0.1:80\n server b 10.0.0.2:80\n"
    found = read(f"{DEFAULTS}{front}{back}", {"hosts.map": "shop.example shop\n"})
    shown = {(route[0], route[2], str(route[4])) for route in routes(found)}
    assert {("shop.example", "/b", "shop-b"), ("shop.example", "/", "shop")} <= shown


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("fall 1800", "100 checks are the most for fall"),
        ("rise 101", "100 checks are the most for rise"),
        ("inter 2h", "An hour is the longest inter"),
        ("slowstart 2h", "An hour is the longest slowstart"),
    ],
)
def test_a_number_that_is_made_smaller_is_said(option: str, why: str) -> None:
    line = f"server s 10.0.0.1:80 check {option}"
    assert why in verdict_of(pool(line), line)[1]
    word = option.split(maxsplit=1)[0]
    fits = f"server s 10.0.0.1:80 check {word} {'100' if word in ('fall', 'rise') else '1h'}"
    assert verdict_of(pool(fits), fits)[0] is Verdict.MAPPED


def test_servers_without_tls_agree_on_no_protocol() -> None:
    plain = pool("server s 10.0.0.1:80 alpn h2 check")
    assert "http_version" not in spec_of(plain, "Pool", "web")
    for options in ("ssl verify none alpn h2,http/1.1", "proto h2"):
        assert spec_of(pool(f"server s 10.0.0.1:80 {options}"), "Pool", "web")["http_version"] == "2"


@pytest.mark.parametrize("words", ["insert indirect nocache", "prefix", "rewrite"])
def test_a_cookie_without_values_of_servers_keeps_no_client(words: str) -> None:
    found = pool(f"cookie LB {words}", "stick-table type ip size 1m", "stick on src", "server s 10.0.0.1:80")
    verdict, why = verdict_of(found, f"cookie LB {words}")
    assert verdict is Verdict.DEAD
    assert "No server has a value for the cookie" in why
    assert spec_of(found, "Pool", "web")["persistence"]["by"] == "source"
    alone = pool(f"cookie LB {words}", "server s 10.0.0.1:80")
    assert "persistence" not in spec_of(alone, "Pool", "web")
    made = pool(f"cookie LB {words} dynamic", "dynamic-cookie-key secret", "server s 10.0.0.1:80")
    assert spec_of(made, "Pool", "web")["persistence"]["by"] == "cookie"


def test_a_server_that_had_no_value_of_the_cookie_is_said() -> None:
    other = "server b 10.0.0.2:80 backup"
    found = pool("cookie LB insert", "server a 10.0.0.1:80 cookie a", other)
    verdict, why = verdict_of(found, other)
    assert verdict is Verdict.DIFFERENT
    assert "known again as well" in why


def test_backup_servers_that_waited_for_the_first_one_are_said() -> None:
    lines = [f"server {name} 10.0.0.{number}:80 backup" for number, name in enumerate("abc", 1)]
    found = pool(*lines)
    assert [verdict_of(found, line)[0] for line in lines] == [Verdict.MAPPED, Verdict.DIFFERENT, Verdict.DIFFERENT]
    assert "not the first one alone" in verdict_of(found, lines[1])[1]
    together = pool("option allbackups", *lines)
    assert {verdict_of(together, line)[0] for line in lines} == {Verdict.MAPPED}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("ssl verify none force-tlsv10", "Versions and ciphers of TLS"),
        ("ssl verify none ssl-min-ver TLSv1.0", "Versions and ciphers of TLS"),
        ("ssl verify none ciphers HIGH", "Versions and ciphers of TLS"),
        ("ssl verify none ssl-min-ver TLSv1.2 no-sslv3 no-tlsv10", ""),
        ("check observe layer4 on-error mark-down", "whatever on-error says"),
        ("send-proxy-v2 proxy-v2-options ssl,cert-cn", "says addresses"),
        ("check agent-check agent-port 81 agent-send up", "is sent nothing"),
        ("non-stick", "known again as well"),
    ],
)
def test_options_of_a_server_that_have_no_field_are_said(options: str, why: str) -> None:
    line = f"server s 10.0.0.1:443 {options}"
    verdict, said = verdict_of(pool(line), line)
    assert why in said
    assert (verdict is Verdict.MAPPED) == (why == "")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("option httpchk",), {"expect_statuses": ["200-399"]}),
        (("option httpchk HEAD /up", "http-check send-state"), {"expect_statuses": ["200-399"]}),
        (("option httpchk", "http-check expect status 204"), {"expect_status": 204}),
        (("option httpchk", "http-check expect rstatus ^2"), {"expect_statuses": ["200-399"]}),
        (("option httpchk", "http-check expect string up"), {"expect_statuses": ["100-599"], "expect_body": "up"}),
        ((), {}),
    ],
)
def test_a_server_that_answers_as_haproxy_expects_is_up(lines: tuple[str, ...], expected: dict[str, Any]) -> None:
    check = spec_of(pool(*lines, "server s 10.0.0.1:80 check"), "Pool", "web")["health_check"]
    assert {name: value for name, value in check.items() if name.startswith("expect")} == expected


def test_expectations_beside_a_check_that_is_none_of_http_say_nothing() -> None:
    line = "http-check expect status 204"
    found = pool("option httpchk", line, "option tcp-check", "server s 10.0.0.1:80 check")
    assert verdict_of(found, line)[0] is Verdict.DIFFERENT
    assert "path" not in spec_of(found, "Pool", "web")["health_check"]


def test_a_check_of_a_database_without_a_user_only_connects() -> None:
    text = "defaults\n mode tcp\nlisten db\n bind :3306\n {}\n server s 10.0.0.1:3306 check\n"
    found = read(text.format("option mysql-check"))
    assert spec_of(found, "Pool", "db")["health_check"] == {"kind": "tcp"}
    assert verdict_of(found, "option mysql-check")[0] is Verdict.DIFFERENT
    named = read(text.format("option mysql-check user probe"))
    assert spec_of(named, "Pool", "db")["health_check"] == {"kind": "mysql", "user": "probe"}


@pytest.mark.parametrize(
    ("lines", "tunnel"),
    [
        (("timeout client 20s", "timeout server 50s"), 20_000),
        (("timeout client 50s", "timeout server 20s"), 20_000),
        (("timeout client 20s", "timeout server 50s", "timeout tunnel 2h"), 3_600_000),
        (("timeout client 20s", "timeout server 50s", "timeout tunnel 5s"), 5_000),
    ],
)
def test_a_silent_connection_is_closed_when_haproxy_closes_it(lines: tuple[str, ...], tunnel: int) -> None:
    for mode in ("tcp", "http"):
        body = "".join(f" {line}\n" for line in (f"mode {mode}", "bind :5432", *lines, "server s 10.0.0.1:5432"))
        found = read(f"listen db\n{body}")
        assert spec_of(found, "Pool", "db")["tunnel_timeout_ms"] == tunnel
