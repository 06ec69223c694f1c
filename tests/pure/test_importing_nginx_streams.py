"""Servers of nginx's `stream`: tcp listeners, with pools by what a connection begins with."""

from __future__ import annotations

from typing import Any

import pytest

from apps.importing.contract import Import
from apps.importing.verdicts import Verdict
from tests.pure.test_importing_nginx import CORPUS, corpus, read, specs, verdict_of


def test_tcp_is_passed_on_by_the_name_that_clients_of_tls_ask_for() -> None:
    first, second, _ = specs(corpus(CORPUS / "12-streams.conf"), "LoadBalancer")
    (listener,) = first["listeners"]
    assert listener["sni_routes"] == [
        {"hostname": "mail.example.com", "pool": "mail"}, {"hostname": "*.apps.example.com", "pool": "apps"},
    ]  # fmt: skip
    assert listener["default_pool"] == "web"
    assert second["listeners"][0]["default_pool"] == "postgres"


def test_servers_that_pass_on_what_comes_are_of_a_stream_without_the_word() -> None:
    found = read("upstream mqtt { server 10.0.0.1:1883; } server { listen 1883; proxy_pass mqtt; }")
    (listener,) = specs(found, "LoadBalancer")[0]["listeners"]
    assert (listener["protocol"], listener["default_pool"]) == ("tcp", "mqtt")
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]


STREAM = "stream {{ map ${0} $to {{ {1} }} server {{ listen 443; ssl_preread on; proxy_pass $to; }} }}"


@pytest.mark.parametrize(
    ("variable", "entries", "expected"),
    [
        ("ssl_preread_protocol", 'default web:443; "" ssh:22;', ({("protocol", "tls"): "web-443"}, "ssh-22")),
        ("ssl_preread_protocol", '"TLSv1.2" web:443; "TLSv1.3" web:443; default ssh:22;',
         ({("protocol", "tls"): "web-443"}, "ssh-22")),
        ("ssl_preread_protocol", "~^TLSv1 web:443;", ({("protocol", "tls"): "web-443"}, None)),
        ("ssl_preread_protocol", 'default web:443; "" web:443;', ({}, "web-443")),
        ("ssl_preread_alpn_protocols", r'"~\bacme-tls/1\b" acme:443; h2 two:443; default web:443;',
         ({("alpn", "acme-tls/1"): "acme-443", ("alpn", "h2"): "two-443"}, "web-443")),
    ],
)  # fmt: skip
def test_a_stream_that_protocols_share_leads_each_to_its_pool(
    variable: str, entries: str, expected: tuple[dict[tuple[str, str], str], str | None]
) -> None:
    found = read(STREAM.format(variable, entries))
    (listener,) = specs(found, "LoadBalancer")[0]["listeners"]
    routes = [dict(each) for each in listener.get("protocol_routes", [])]
    pools = {pair: pool for each in routes for pool in [each.pop("pool")] for pair in each.items()}
    assert (pools, listener.get("default_pool")) == expected
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]


@pytest.mark.parametrize(
    ("variable", "entries"),
    [
        ("ssl_preread_protocol", '"TLSv1.2" old:443; "TLSv1.3" new:443;'),
        ("ssl_preread_alpn_protocols", "h2,http/1.1 web:443; default web:443;"),
        ("remote_addr", "default web:443;"),
    ],
)
def test_what_a_stream_asks_beyond_is_said(variable: str, entries: str) -> None:
    found = read(STREAM.format(variable, entries))
    assert [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]


def listener_of(found: Import) -> dict[str, Any]:
    """The only one."""
    listener: dict[str, Any]
    ((listener,),) = [each["listeners"] for each in specs(found, "LoadBalancer")]
    return listener


NAMED = "map $ssl_preread_server_name $name {{ {0} a.example a:443; *.b.example b:443; default rest:443; }}"
SERVER = "server {{ listen 443{0}; ssl_preread {1}; proxy_pass ${2}; }}"


def stream(*parts: str) -> Import:
    return read("stream { " + " ".join(parts) + " }")


def test_without_the_word_hostnames_a_star_is_a_character() -> None:
    found = stream(NAMED.format(""), SERVER.format("", "on", "name"))
    assert listener_of(found)["sni_routes"] == [{"hostname": "a.example", "pool": "a-443"}]
    assert verdict_of(found, "*.b.example b:443")[0] is Verdict.DEAD


@pytest.mark.parametrize(("flag", "reading"), [("", "off"), (" ssl", "on")])
def test_names_that_nginx_does_not_read_choose_no_pool(flag: str, reading: str) -> None:
    found = stream(NAMED.format("hostnames;"), SERVER.format(flag, reading, "name"))
    assert "sni_routes" not in listener_of(found)
    assert listener_of(found)["default_pool"] == "rest-443"


def test_where_tls_ends_the_name_in_it_chooses_the_pool() -> None:
    found = stream(NAMED.format("hostnames;").replace("preread_", ""), SERVER.format(" ssl", "off", "name"))
    assert [each["hostname"] for each in listener_of(found)["sni_routes"]] == ["a.example", "*.b.example"]


def test_a_map_of_protocols_leads_to_a_map_of_names() -> None:
    protocols = 'map $ssl_preread_protocol $all { "" ssh:22; default $name; }'
    found = stream(NAMED.format("hostnames;"), protocols, SERVER.format("", "on", "all"))
    listener = listener_of(found)
    assert [each["pool"] for each in listener["sni_routes"]] == ["a-443", "b-443"]
    assert listener["protocol_routes"] == [{"protocol": "tls", "pool": "rest-443"}]
    assert listener["default_pool"] == "ssh-22"
    assert verdict_of(found, "ssl_preread on")[0] is Verdict.DIFFERENT  # a silent client is led to a pool


def test_a_server_that_answers_itself_is_not_called_dead() -> None:
    assert verdict_of(stream("server { listen 9; return hello; }"), "return hello")[0] is Verdict.NOT_POSSIBLE


def test_lines_of_a_stream_that_work_are_mapped() -> None:
    found = stream("server { listen 5432; proxy_pass 10.0.0.1:5432; }")
    assert {verdict_of(found, text)[0] for text in ("listen 5432", "proxy_pass 10.0.0.1:5432")} == {Verdict.MAPPED}


@pytest.mark.parametrize(
    ("listen", "ports"),
    [
        ("5000-5002", [5000, 5001, 5002]),
        ("*:5000-5001", [5000, 5001]),
        ("5000-6000", []),
        ("65535-65536", []),
        ("unix:/run/x.sock", []),
    ],
)
def test_a_range_of_ports_is_as_many_listeners(listen: str, ports: list[int]) -> None:
    found = stream(f"server {{ listen {listen}; proxy_pass 10.0.0.1:80; }}")
    assert [one["port"] for each in specs(found, "LoadBalancer") for one in each["listeners"]] == ports
    assert (verdict_of(found, f"listen {listen}")[0] is Verdict.NOT_POSSIBLE) == (not ports)
