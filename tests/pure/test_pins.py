"""Whom a secret may be shown to: servers are compared as written, and what can be read in two ways is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.drivers.pins import NotNamed, Unreadable, named_endpoint, read_endpoint

PIN = "SPILLWAY_DNS_EXAMPLE_SERVERS"
PINS = (
    "ns1.example.com:53, [2001:db8::53], 192.0.2.53:5353, https://ns2.example.com:8081, https://tools.example.com/dns/a"
)


def may(server: str, pins: str = PINS) -> bool:
    """Whether the pins let a secret be used there."""
    try:
        named_endpoint(server, variable=PIN, whose="env:EXAMPLE", given={PIN: pins})
    except NotNamed:
        return False
    return True


@pytest.mark.parametrize(
    "server",
    [
        "ns1.example.com:53",
        "ns1.example.com",
        "NS1.Example.COM:53",
        "[2001:db8::53]:53",
        "[2001:DB8:0:0::53]:53",
        "192.0.2.53:5353",
        "https://ns2.example.com:8081",
        "HTTPS://NS2.example.com:8081/",
        "https://ns2.example.com:8081/below/it",
        "https://tools.example.com/dns/a",
        "https://tools.example.com:443/dns/a/",
        "https://tools.example.com/dns/a/compute/v1/",
    ],
)
def test_a_server_that_is_named_may_see_the_secret_however_its_name_is_spelt(server: str) -> None:
    assert may(server)


@pytest.mark.parametrize(
    "server",
    [
        # others
        "ns2.example.com:53", "ns1.example.com:54", "192.0.2.53:53", "[2001:db8::54]:53", "evil.example:53",
        "ns1.example.com.evil.example:53", "evil-ns1.example.com:53", "example.com:53", "https://ns2.example.com",
        "https://ns2.example.com:8080", "https://sub.ns2.example.com:8081",
        # the right server in another protocol, which shows what TSIG never shows
        "http://ns2.example.com:8081", "http://ns1.example.com:53", "https://ns1.example.com:53",
        "ns2.example.com:8081", "dns://ns1.example.com:53", "ftp://ns1.example.com:53", "//ns1.example.com:53",
        "memory://ns1.example.com",
        # user names, fragments, queries, backslashes: other parsers find another host
        "https://ns2.example.com:8081@evil.example", "https://evil.example@ns2.example.com:8081",
        "https://ns2.example.com:8081\\@evil.example", "https://evil.example\\@ns2.example.com:8081",
        "https://evil.example#@ns2.example.com:8081", "https://evil.example/?@ns2.example.com:8081",
        "https://ns2.example.com:8081#", "https://ns2.example.com:8081?x=1", "ns1.example.com:53@evil.example",
        "https:ns2.example.com:8081", "https:///ns2.example.com:8081", "https://ns2.example.com:8081:8081",
        # blanks and control characters, which some parsers take out
        " ns1.example.com:53", "ns1.example.com:53 ", "ns1.example.com:53\n", "ns1\t.example.com:53",
        "https://ns2.exam\nple.com:8081", "ns1.example.com:53\x00", "https://ns2.example.com:8081/\r\nX: y",
        # dots, lists, escapes, other letters
        "ns1.example.com.:53", "https://ns2.example.com.:8081", "ns1..example.com:53", ".ns1.example.com:53",
        "ns1.example.com:53,evil.example:53", "ns1%2eexample.com:53", "https://ns2.example.com%00.evil.example:8081",
        "ns1。example.com:53", "nſ1.example.com:53", "ｎs1.example.com:53", "ns1.example.com:５３",
        # ports
        "ns1.example.com:", "ns1.example.com:053", "ns1.example.com:+53", "ns1.example.com:0", "ns1.example.com:65589",
        # addresses that only some programs read alike
        "192.0.565:5353", "3221225525:5353", "0xc0000235:5353", "0300.0.2.065:5353", "192.0.2.53.:5353",
        "192.0.2.053:5353", "[::ffff:192.0.2.53]:5353", "[::ffff:c000:235]:5353", "[64:ff9b::192.0.2.53]:5353",
        "2001:db8::53", "2001:db8::53:53", "[2001:db8::53%eth0]:53", "[2001:db8::53", "[ns1.example.com]:53", "[]:53",
        "[192.0.2.53]:5353", "https://2001:db8::53", "[2001:db8::53]@evil.example:53", "[2001:db8::53]evil.example:53",
        # beside the path that is named, and out of it again
        "https://tools.example.com", "https://tools.example.com/dns", "https://tools.example.com/dns/ab",
        "https://tools.example.com/dns/A", "https://tools.example.com/dns/a/../../evil",
        "https://tools.example.com/dns/a/./b", "https://tools.example.com/dns/a/..", "https://tools.example.com//dns/a",
        "https://tools.example.com/dns/a//b", "https://tools.example.com/dns/a/%2e%2e/b",
        "https://tools.example.com/dns/a;x", "https://tools.example.com/dns%2fa", "https://tools.example.com/dns\\a",
        "", ":", ":53", "https://", "https://:8081", "*", "*:53",
    ],
)  # fmt: skip
def test_no_other_server_and_no_other_reading_of_its_name_may_see_it(server: str) -> None:
    assert not may(server)


@pytest.mark.parametrize(
    "pins",
    ["", " ", ",", "evil.example", "ns1.example.com.", "*", "*.example.com:53", "0.0.0.0/0", "ns1.example.com:*"],
)
def test_without_a_pin_that_names_it_no_server_may_see_it(pins: str) -> None:
    assert not may("ns1.example.com:53", pins)


def test_without_the_variable_no_server_may_see_it() -> None:
    with pytest.raises(NotNamed):
        named_endpoint("ns1.example.com:53", variable=PIN, whose="env:EXAMPLE", given={})


def test_a_refusal_names_the_variable_and_what_to_write_into_it() -> None:
    with pytest.raises(NotNamed) as caught:
        named_endpoint("NS9.example.com:53", variable=PIN, whose="env:EXAMPLE", given={PIN: PINS})
    assert f"Set {PIN} " in caught.value.message
    assert "env:EXAMPLE at ns9.example.com:53" in caught.value.message
    assert "ns1.example.com" not in caught.value.message


def test_an_entry_that_cannot_be_read_refuses_all_and_is_not_repeated() -> None:
    pins = "ns1.example.com:53, hush hush"
    with pytest.raises(NotNamed, match=f"Entry 2 of {PIN}") as caught:
        named_endpoint("ns1.example.com:53", variable=PIN, whose="env:EXAMPLE", given={PIN: pins})
    assert "hush" not in caught.value.message


@given(st.text(alphabet="aA1.:/[]@%\\-#?xh tps\n", max_size=40))
def test_what_can_be_read_has_one_spelling_that_reads_the_same(text: str) -> None:
    try:
        endpoint = read_endpoint(text)
    except Unreadable:
        return
    assert read_endpoint(str(endpoint)) == endpoint
    assert may(text, str(endpoint))
