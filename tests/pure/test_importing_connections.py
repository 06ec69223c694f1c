"""Ports that protocols share in haproxy.cfg: pools by what clients send first."""

from __future__ import annotations

import pytest

from apps.importing.verdicts import Verdict
from tests.pure.test_importing import verdict_of
from tests.pure.test_importing_effects import listeners_of, tcp

WAITING = ("tcp-request inspect-delay 3s", "tcp-request content accept if WAIT_END")

SSH = ("{ payload(0,7) -m bin 5353482d322e30 }", "{ req.payload(0,4) -m str SSH- }")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["use_backend a if { req.ssl_hello_type 1 }", "default_backend b"], {"tls": "a", "": "b"}),
        (["use_backend b if !{ req_ssl_ver gt 3 }", "default_backend a"], {"tls": "a", "": "b"}),
        (["use_backend a if HTTP", "default_backend b"], {"http": "a", "": "b"}),
        (["use_backend a if HTTP"], {"http": "a"}),
        *((["use_backend a if " + each, "default_backend b"], {"ssh": "a", "": "b"}) for each in SSH),
        (["use_backend a if { req.payload(0,1) -m bin 05 }", "default_backend b"], {"socks5": "a", "": "b"}),
        (["use_backend a if { req.payload(0,1) -m bin 03 }", "default_backend b"], {"rdp": "a", "": "b"}),
        (["use_backend a if { hdr(Upgrade) -i websocket }", "default_backend b"], {"websocket": "a", "": "b"}),
        (["use_backend a if { hdr(Connection) -i upgrade } { hdr(Upgrade) -i websocket }", "use_backend b if HTTP"],
         {"websocket": "a", "http": "b"}),
        (["use_backend a if HTTP", "use_backend b if { hdr(Upgrade) -i websocket }"], {"http": "a"}),
        ([r"use_backend a if { path_reg -i ^\/(.*) }", "default_backend b"], {"http": "a", "": "b"}),
        (["use_backend a if !{ req.len gt 0 }", "default_backend b"], {"silent": "a", "": "b"}),
        ([f"use_backend a if {SSH[0]} or {{ req.len 0 }}", "default_backend b"], {"ssh": "a", "silent": "a", "": "b"}),
        (["use_backend a if { req.ssl_alpn acme-tls/1 }", "default_backend b"], {"acme-tls/1": "a", "": "b"}),
        (["use_backend a if { req.ssl_alpn h2 acme-tls/1 }", "use_backend b if { req.ssl_hello_type 1 }"],
         {"h2": "a", "acme-tls/1": "a", "tls": "b"}),
        (["use_backend a if { ssl_fc_alpn h2 }", "default_backend b"], {"": "b"}),
        (["use_backend a if { req.len gt 0 }", "default_backend a"], {"": "a"}),
    ],
)  # fmt: skip
def test_a_port_that_protocols_share_leads_each_to_its_pool(lines: list[str], expected: dict[str, str]) -> None:
    (listener,) = listeners_of(found := tcp(*WAITING, *lines))
    routes = {each.get("protocol") or each["alpn"]: each["pool"] for each in listener.get("protocol_routes", [])}
    assert routes | ({"": listener["default_pool"]} if "default_pool" in listener else {}) == expected
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]


def test_what_was_agreed_on_chooses_where_tls_ends() -> None:
    lines = ("use_backend a if { ssl_fc_alpn mqtt }", "use_backend a if { ssl_fc_alpn h9 }", "use_backend a if HTTP")
    text = tcp(*WAITING, *lines, "default_backend b", bind="bind :443 ssl crt x.pem alpn mqtt")
    (listener,) = listeners_of(text)
    assert listener["protocol_routes"] == [{"alpn": "mqtt", "pool": "a"}, {"protocol": "http", "pool": "a"}]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("use_backend a if { req.ssl_alpn h2 }", "also among others"),
        ("use_backend a if { req.ssl_alpn acme-tls/1 }", ""),
    ],
)
def test_alpn_of_a_client_is_a_list(line: str, why: str) -> None:
    found = tcp(*WAITING, line, "default_backend b")
    verdict, said = verdict_of(found, line)
    assert verdict is (Verdict.DIFFERENT if why else Verdict.MAPPED)
    assert why in said


@pytest.mark.parametrize(
    "condition",
    [
        "{ req.payload(0,4) -m str SET }",
        "{ payload(4,4) -m bin 5353482d }",
        "{ req.payload(0,2) -m bin 0502 }",
        "{ path_beg /disk }",
        "{ req.ssl_alpn -m sub h2 }",
        "{ req.payload(0,4) -m reg SSH }",
    ],
)
def test_other_bytes_choose_no_pool(condition: str) -> None:
    line = f"use_backend a if {condition}"
    found = tcp(*WAITING, line, "default_backend b")
    assert verdict_of(found, line)[0] is Verdict.NOT_POSSIBLE
    assert listeners_of(found)[0]["default_pool"] == "b"


def test_protocols_that_haproxy_closes_and_a_listener_does_not_are_said() -> None:
    line = "use_backend a if !HTTP"
    found = tcp(*WAITING, line)
    assert listeners_of(found)[0]["default_pool"] == "a"
    assert verdict_of(found, line)[0] is Verdict.DIFFERENT
    names = tcp(*WAITING, "use_backend a if { req.ssl_sni a.example.com }", line)
    assert "protocol_routes" not in listeners_of(names)[0]


def test_a_question_about_tls_decides_nothing_beside_one_about_its_name() -> None:
    found = tcp("use_backend a if { req.ssl_hello_type 1 } { req.ssl_sni -i a.example.com }", "default_backend b")
    assert listeners_of(found)[0]["sni_routes"] == [{"hostname": "a.example.com", "pool": "a"}]
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]


def test_a_name_that_a_line_above_has_decides_nothing_more() -> None:
    lines = ("use_backend a if { req.ssl_sni a.example.com }", "use_backend b if !{ req.ssl_sni a.example.com }")
    found = tcp(*WAITING, *lines)
    (listener,) = listeners_of(found)
    assert (listener["sni_routes"], listener["default_pool"]) == ([{"hostname": "a.example.com", "pool": "a"}], "b")
    assert {verdict_of(found, each)[0] for each in lines} == {Verdict.MAPPED}


def test_what_servers_refuse_themselves_is_left_to_them() -> None:
    line = "tcp-request content reject unless { req.payload(0,0),mqtt_is_valid }"
    verdict, why = verdict_of(tcp(WAITING[0], line, "default_backend a"), line)
    assert verdict is Verdict.DIFFERENT
    assert "the servers refuse what they do not speak" in why


@pytest.mark.parametrize("waiting", [(), WAITING[:1], WAITING[1:]])
def test_what_haproxy_does_not_wait_for_is_said(waiting: tuple[str, ...]) -> None:
    line = "use_backend a if { req.ssl_hello_type 1 }"
    verdict, why = verdict_of(tcp(*waiting, line, "default_backend b"), line)
    assert verdict is Verdict.DIFFERENT
    assert "HAProxy has often not read them yet" in why
    assert verdict_of(tcp(*WAITING, line, "default_backend b"), line)[0] is Verdict.MAPPED


@pytest.mark.parametrize(
    ("lines", "routes", "default"),
    [
        (["use_backend a if { req.ssl_sni -m found }", "default_backend b"], [{"protocol": "tls", "pool": "a"}], "b"),
        (["use_backend a if !{ req.ssl_sni -m found }", "default_backend b"], [{"protocol": "tls", "pool": "b"}], "a"),
    ],
)
def test_tls_without_a_name_is_taken_for_tls_with_one_and_said(
    lines: list[str], routes: list[dict[str, str]], default: str
) -> None:
    found = tcp(*WAITING, *lines)
    (listener,) = listeners_of(found)
    assert (listener["protocol_routes"], listener["default_pool"]) == (routes, default)
    verdict, why = verdict_of(found, lines[0])
    assert verdict is Verdict.DIFFERENT
    assert "TLS that asks for no name" in why


def test_who_refuses_tls_without_a_name_refuses_no_other_one() -> None:
    line = "tcp-request content reject unless { req.ssl_sni -m found }"
    found = tcp(WAITING[0], line, "use_backend a if { req.ssl_sni a.example.com }", "default_backend b")
    assert listeners_of(found)[0]["default_pool"] == "b"
    assert verdict_of(found, line)[0] is Verdict.DIFFERENT


def test_a_backend_that_refuses_everybody_is_a_listener_without_a_default() -> None:
    text = "backend closed\n mode tcp\n tcp-request content reject\n"
    found = tcp(*WAITING, "use_backend a if { req.ssl_sni a.example.com }", "default_backend closed", more=text)
    (listener,) = listeners_of(found)
    assert listener["sni_routes"] == [{"hostname": "a.example.com", "pool": "a"}]
    assert "default_pool" not in listener
    assert {verdict_of(found, each)[0] for each in ("backend closed", "tcp-request content reject")} == {Verdict.MAPPED}
