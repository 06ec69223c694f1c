"""The grammar of every field: the corpus of hostile values is refused, ordinary values pass unchanged."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import servers
from tests.pure.compiler_fixtures import certificate_pem

Grammar = Callable[[object], object]

LINE_BREAKS = ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"]
SEPARATORS = [*" \t\"'\\#;,|{}()", "\xa0", "\u200b"]
TEMPLATES = ["%[env(HOME)]", "%%", "${HOME}", "{{7*7}}", '${file("/etc/passwd")}', "%{ for }"]
FLAGS = ["-m reg", "-f file", "if TRUE", "/ } || { always_true"]
SHAPES = ["", "\0", "\ud800", "٨٠", "a\u202eb"]

WORDS: dict[str, tuple[Grammar, str]] = {
    "hostname": (grammar.hostname, "shop.example"),
    "path": (grammar.path, "/shop"),
    "name": (grammar.name, "shop"),
    "object_id": (grammar.object_id, "pool-1"),
    "method": (grammar.method, "GET"),
    "header_name": (grammar.header_name, "X-Canary"),
    "server_address": (grammar.server_address, "192.0.2.1"),
    "listen_address": (grammar.listen_address, "192.0.2.1"),
    "redirect_host": (grammar.redirect_host, "shop.example"),
    "server_host": (grammar.server_host, "shop"),
    "url_scheme": (grammar.url_scheme, "https"),
    "check_path": (grammar.check_path, "/health?full=1"),
    "environment_name": (lambda value: f"env:{grammar.environment_name(value)}", "env:PROD"),
}


@pytest.mark.parametrize("field", WORDS)
def test_every_word_passes_alone_and_is_refused_with_anything_hostile_around_it(field: str) -> None:
    check, good = WORDS[field]
    assert check(good) == good
    for bad in (*LINE_BREAKS, *SEPARATORS, *TEMPLATES, *FLAGS, *SHAPES[1:]):
        for value in (bad + good, good + bad, good[:2] + bad + good[2:], bad):
            with pytest.raises(GrammarError):
                check(value)
    for value in (None, True, 7, 7.5, b"x", [good], {}):
        with pytest.raises(GrammarError):
            check(value)


@pytest.mark.parametrize(
    ("check", "value", "code"),
    [
        (grammar.hostname, "*", "wildcard"),
        (grammar.hostname, "*.com", "too_few_labels"),
        (grammar.hostname, "a.*.example.com", "wildcard"),
        (grammar.hostname, "*.*.example.com", "wildcard"),
        (grammar.hostname, "a*.example.com", "wildcard"),
        (grammar.hostname, "shop.example.", "final_dot"),
        (grammar.hostname, "Shop.example", "upper_case"),
        (grammar.hostname, "a_b.example", "hostname"),
        (grammar.hostname, "a" * 64 + ".example", "hostname"),
        (grammar.hostname, "192.0.2.1", "address_as_host"),
        (grammar.hostname, "2001:db8::1", "address_as_host"),
        (grammar.hostname, "shop.example:80", "address_as_host"),
        (grammar.hostname, "user@shop.example", "hostname"),
        (grammar.hostname, "bücher.example", "not_ascii"),
        (grammar.hostname, "shop．example", "not_ascii"),
        (grammar.hostname, "a..example", "hostname"),
        (grammar.hostname, "", "blank"),
        (grammar.hostname, "a." * 127 + "toolong", "too_long"),
        (grammar.hostname, "a.example victim.example", "hostname"),
        (grammar.path, "shop", "path_start"),
        (grammar.path, "/a/../b", "dot_segment"),
        (grammar.path, "/./a", "dot_segment"),
        (grammar.path, "/%2e%2e/a", "percent"),
        (grammar.path, "/a%2fb", "percent"),
        (grammar.path, "/a%00", "percent"),
        (grammar.path, "//a", "empty_segment"),
        (grammar.path, "/a//b", "empty_segment"),
        (grammar.path, "/a;x", "path"),
        (grammar.path, "/a?b", "path_query"),
        (grammar.path, "/a#b", "path_query"),
        (grammar.path, "/a/*", "path_wildcard"),
        (grammar.path, "/" + "a" * 1024, "too_long"),
        (grammar.prefix_path, "/a/", "final_slash"),
        (grammar.header_name, "Host", "header_reserved"),
        (grammar.header_name, "content-length", "header_reserved"),
        (grammar.header_name, "Transfer-Encoding", "header_reserved"),
        (grammar.header_name, "Connection", "header_reserved"),
        (grammar.header_name, "X-Forwarded-For", "header_reserved"),
        (grammar.header_name, "X_Canary", "header_name"),
        (grammar.header_name, "X.Canary", "header_name"),
        (grammar.header_value, "-m reg .*", "header_value"),
        (grammar.header_value, "if", "header_value"),
        (grammar.header_value, "a\r\nX: y", "control_character"),
        (grammar.header_value, "a" * 65536, "too_long"),
        (grammar.name, "if", "reserved_name"),
        (grammar.name, "TRUE", "name"),
        (grammar.name, "backend", "reserved_name"),
        (grammar.name, "pool-17", "reserved_name"),
        (grammar.name, "<script>", "name"),
        (grammar.method, "get", "method"),
        (grammar.method, "CONNECT", "method"),
        (grammar.url_scheme, "javascript", "too_long"),
        (grammar.redirect_host, "*.example.com", "wildcard"),
        (grammar.environment_name, "PROD", "credentials"),
        (grammar.environment_name, "env:prod", "credentials"),
        (grammar.environment_name, "env:9", "credentials"),
        (grammar.environment_name, "env:" + "A" * 62, "credentials"),
    ],
)
def test_a_hostile_value_is_refused_for_the_right_reason(check: Grammar, value: str, code: str) -> None:
    with pytest.raises(GrammarError) as refusal:
        check(value)
    assert refusal.value.code == code
    assert refusal.value.message.endswith(".")


@pytest.mark.parametrize(
    "value", ["shop.example", "*.shop.example", "xn--bcher-kva.example", "a-b.c.example", "1.example"]
)
def test_ordinary_host_names_pass(value: str) -> None:
    assert grammar.hostname(value) == value


@pytest.mark.parametrize(
    "value", ["/", "/a", "/a/", "/.well-known/acme", "/a..b", "/caf%C3%A9", "/a%20b", "/a:b@c!&+=~"]
)
def test_ordinary_paths_pass(value: str) -> None:
    assert grammar.path(value) == value


@pytest.mark.parametrize(
    "value",
    [
        "unix@/var/run/docker.sock", "abns@x", "fd@3", "/var/run/x.sock", "sockpair@3", "ipv4@127.0.0.1",
        "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "127.1", "127.0.0.1", "127.9.9.9", "::1", "localhost",
        "x.localhost", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:7f00:1::", "0.0.0.0", "::", "169.254.169.254", "fe80::1",
        "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200", "metadata.google.internal", "224.0.0.1", "ff02::1",
        "255.255.255.255", "10.0.0.1:80", "10.0.0.1/8", "010.0.0.1", "2001:DB8::1", "2001:0db8::1", "[2001:db8::1]",
        "shop_1.2_3", "Shop_api", "localhost6", "localhost4.localdomain4", "broadcasthost", "metadata.azure.internal",
    ],
)  # fmt: skip
def test_an_address_that_reaches_this_machine_or_hides_another_is_refused(value: str) -> None:
    with pytest.raises(GrammarError):
        grammar.server_address(value)


@pytest.mark.parametrize(
    "value", ["10.0.0.1", "192.168.1.1", "203.0.113.7", "2001:db8::1", "app", "app.internal.example", "shop_api_1"]
)
def test_private_and_public_addresses_and_names_may_be_servers(value: str) -> None:
    assert grammar.server_address(value) == value


def test_only_loopback_is_allowed_by_local_development() -> None:
    assert grammar.server_address("127.0.0.1", local_development=True) == "127.0.0.1"
    assert grammar.server_address("localhost", local_development=True) == "localhost"
    for value in ("169.254.169.254", "::ffff:127.0.0.1", "2130706433", "0.0.0.0", "unix@/x"):
        with pytest.raises(GrammarError):
            grammar.server_address(value, local_development=True)


AUTHORITY = certificate_pem("ca.example").partition("-----BEGIN PRIVATE")[0]


@pytest.mark.parametrize(
    "value",
    [
        f"{AUTHORITY}crl-file /etc/passwd\n",
        f"# a comment\n{AUTHORITY}",
        AUTHORITY.replace("\n", "\r\n"),
        AUTHORITY.replace("MII", "M II"),
        AUTHORITY.replace("MII", "M%[env(HOME)]"),
        AUTHORITY.replace("CERTIFICATE", "PRIVATE KEY"),
        certificate_pem("ca.example"),
        AUTHORITY * 200,
    ],
)
def test_authorities_are_certificates_and_nothing_in_between(value: str) -> None:
    assert servers.ca_bundle(AUTHORITY * 2) == AUTHORITY * 2
    with pytest.raises(GrammarError):
        servers.ca_bundle(value)


@pytest.mark.parametrize(
    "check", [grammar.port, grammar.server_weight, grammar.route_weight, grammar.time_ms, grammar.status_code]
)
@pytest.mark.parametrize(
    "value", [-1, 2**31, 10**9, True, False, "80", 80.0, float("nan"), "1e3", "0x50", "080", "٨٠", None]
)
def test_numbers_are_whole_and_within_bounds(check: Grammar, value: object) -> None:
    with pytest.raises(GrammarError):
        check(value)


def test_the_bounds_of_ports_and_weights_are_exact() -> None:
    assert [grammar.port(1), grammar.port(65535), grammar.server_weight(0), grammar.server_weight(256)] == [
        1,
        65535,
        0,
        256,
    ]
    for check, value in (
        (grammar.port, 0),
        (grammar.port, 65536),
        (grammar.server_weight, 257),
        (grammar.route_weight, 1001),
    ):
        with pytest.raises(GrammarError):
            check(value)


def test_pem_is_a_chain_and_exactly_one_key() -> None:
    good = certificate_pem("a.example")
    certificate, key = good.split("-----BEGIN PRIVATE", 1)
    key = "-----BEGIN PRIVATE" + key
    assert grammar.pem(good) == good
    for bad in ("", certificate, key, good + key, good + "\n", "Bag\n" + good, good.replace("\n", "\r\n"), good * 100):
        with pytest.raises(GrammarError):
            grammar.pem(bad)


def test_a_body_takes_text_but_no_control_characters() -> None:
    assert grammar.body("Gone — ä 'x' \"y\" {}%[src]\n") != ""
    for bad in ("a\0", "a\x1b[31m", "a\r", "a\ud800", "a\u2028", "a" * 8193, "ä" * 5000, None):
        with pytest.raises(GrammarError):
            grammar.body(bad)


@pytest.mark.slow(reason="every grammar meets generated texts")
@given(st.text(max_size=40))
def test_whatever_passes_has_no_sign_that_could_carry_structure(value: str) -> None:
    for check in (grammar.hostname, grammar.path, grammar.header_name, grammar.server_address, grammar.name):
        try:
            text = str(check(value))
        except GrammarError:
            continue
        assert text.isascii()
        assert not set(text) & set(" \t\n\r\"'\\#;,|{}()$")
