"""Reading haproxy.cfg: words that stand where they do nothing, or where HAProxy takes them otherwise."""

from __future__ import annotations

import pytest

from apps.importing.verdicts import Verdict
from tests.pure.test_importing import DEFAULTS, frontend, read, routes, verdict_of

SERVER = " server s 10.0.0.1:80\n"
LISTEN = f"listen web\n bind :80\n{SERVER}"


@pytest.mark.parametrize("line", ["contimeout 5000", "srvtimeout 5000", "srvexp 5000", "option ssl-hello-chk"])
def test_what_is_said_of_servers_says_nothing_without_any(line: str) -> None:
    found = read(f"defaults\n mode http\n {line}\nlisten web\n bind :80\n")
    assert verdict_of(found, line) == (Verdict.DEAD, "This section has no servers.")


def test_or_is_written_in_any_case() -> None:
    line = "use_backend a if { path /x } OR { path /y } Or { path /z }"
    found = frontend(line, "default_backend b")
    assert {route[2] for route in routes(found) if route[4] == "a"} == {"/x", "/y", "/z"}
    assert verdict_of(found, line)[0] is Verdict.MAPPED


@pytest.mark.parametrize(
    "acls",
    [
        ("hdr(Upgrade) -i websocket", "hdr(Connection) -i upgrade"),
        ("method GET HEAD", "method HEAD GET"),
        ("hdr(x-version) -i 2", "hdr(x-version) 2"),
        ("src 192.0.2.0/24 198.51.100.0/24", "src 198.51.100.0/24 192.0.2.0/24"),
    ],
)
def test_two_spellings_of_one_question_are_one_route(acls: tuple[str, str]) -> None:
    lines = [f"acl asked {each}" for each in acls]
    found = frontend(*lines, "use_backend a if asked", "default_backend b")
    assert [route[4] for route in routes(found)] == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    [
        "http-request deny if { req.hdr_cnt(content-length) gt 1 }",
        "http-response deny if { res.hdr_cnt(content-length) gt 1 }",
    ],
)
def test_requests_and_responses_of_two_lengths_never_come_to_a_rule(line: str) -> None:
    found = frontend(line, "default_backend a")
    assert verdict_of(found, line)[0] is (Verdict.DEAD if "response" in line else Verdict.MAPPED)
    assert [route[4] for route in routes(found)] == ["a"]


def test_a_response_has_a_server() -> None:
    line = "http-response set-header X-By spillway if { srv_id -m found }"
    found = frontend(line, "default_backend a")
    assert verdict_of(found, line)[0] is Verdict.MAPPED


def test_the_own_line_of_a_section_is_of_that_section() -> None:
    found = read(f"{DEFAULTS}{LISTEN}backend spare\n{SERVER}")
    sections = {line.text: line.section for line in found.report}
    assert (sections["listen web"], sections["backend spare"]) == ("listen web", "backend spare")


def test_checks_that_nothing_makes_have_no_time() -> None:
    found = read(f"{DEFAULTS} timeout check 5s\n{LISTEN}")
    assert verdict_of(found, "timeout check 5s")[0] is Verdict.DEAD


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("hash-type consistent", Verdict.DIFFERENT),
        ("transparent", Verdict.DIFFERENT),
        ("monitor fail if { nbsrv(web) lt 1 }", Verdict.DIFFERENT),
        ("monitor-net 10.0.0.0/8", Verdict.DIFFERENT),
        ("load-server-state-from-file global", Verdict.NODE_SETTING),
        ("tcp-response inspect-delay 5s", Verdict.MAPPED),
        ("tcp-request connection sc-inc-gpc0(0)", Verdict.DIFFERENT),
        ("http-response sc-inc-gpc0(0)", Verdict.DIFFERENT),
        ("http-response wait-for-body time 1s", Verdict.DIFFERENT),
        ("http-request pause 100", Verdict.DIFFERENT),
        ("http-request early-hint Link </a.css>", Verdict.DIFFERENT),
        ("http-response del-header Server -m str", Verdict.MAPPED),
    ],
)
def test_words_without_a_place_of_their_own_lose_nothing_else(line: str, verdict: Verdict) -> None:
    assert verdict_of(read(f"{DEFAULTS}{LISTEN} {line}\n"), line)[0] is verdict


@pytest.mark.parametrize(
    "line", ["spread-checks 5", "tune.ssl.default-dh-param 2048", "ssl-default-bind-options no-sslv3"]
)
def test_a_setting_of_the_machine_is_one_wherever_it_stands(line: str) -> None:
    verdict, why = verdict_of(frontend(line, "default_backend a"), line)
    assert verdict is Verdict.NODE_SETTING
    assert why.startswith("HAProxy takes it in global alone")


@pytest.mark.parametrize("condition", ["HTTP_1.0", "!HTTP_1.1", "{ req.ver 1.0 }"])
def test_versions_of_http_are_not_told_apart_and_that_is_said(condition: str) -> None:
    line = f"http-request deny if {condition}"
    verdict, why = verdict_of(frontend(line, "default_backend a"), line)
    assert (verdict, why.startswith("Versions of HTTP")) == (Verdict.DIFFERENT, True)


def test_what_a_backend_says_of_requests_is_lost_where_tcp_leads_to_its_servers() -> None:
    found = read(
        "defaults\n mode tcp\nfrontend f\n bind :443\n tcp-request inspect-delay 5s\n"
        " use_backend other if { req.ssl_sni a.example.com }\n default_backend web\n"
        f"backend other\n{SERVER}backend web\n mode http\n http-response del-header Server\n"
        f" http-request set-log-level silent\n{SERVER}"
    )
    verdict, why = verdict_of(found, "http-response del-header Server")
    assert verdict is Verdict.NOT_POSSIBLE
    assert "reach these servers as they are" in why
    assert verdict_of(found, "http-request set-log-level silent")[0] is Verdict.NODE_SETTING


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("%[req.hdr(Host),lower]", "{host}"),
        ("%[hdr(host),field(1,:)]", "{host}"),
        ("%[ssl_fc,iif(https,http)]", "{scheme}"),
    ],
)
def test_values_that_say_the_same_in_other_words_are_known(value: str, text: str) -> None:
    line = f"http-request set-header X-Asked {value}"
    found = frontend(line, "default_backend a")
    assert verdict_of(found, line)[0] is Verdict.MAPPED
    assert any(text in str(each["spec"]) for each in found.documents)
