"""One spelling of each IP address, and which of them we may call: the same answers on every Python."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Interface, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.compiler.address_spelling import spelled
from apps.compiler.addresses import refusal_of_target

SPELLINGS = [
    ("192.0.2.1", "192.0.2.1"),
    ("0.0.0.0", "0.0.0.0"),
    ("::", "::"),
    ("::1", "::1"),
    ("1::", "1::"),
    ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
    ("2001:db8:0:1:0:0:0:1", "2001:db8:0:1::1"),
    ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
    ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
    ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
    ("1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"),
    ("::ffff:192.0.2.1", "::ffff:c000:201"),
    ("::192.0.2.1", "::c000:201"),
    ("64:ff9b::192.0.2.1", "64:ff9b::c000:201"),
    ("fe80::1%eth0", "fe80::1%eth0"),
]
NETWORKS = [
    ("192.0.2.0/24", "192.0.2.0/24"),
    ("2001:DB8::/32", "2001:db8::/32"),
    ("::/0", "::/0"),
    ("::ffff:192.0.2.0/120", "::ffff:c000:200/120"),
]
MAY_BE_CALLED = ["1.1.1.1", "8.8.8.8", "192.0.1.1", "198.17.255.255", "2001:200::1", "2606:4700::1111", "2a00::1"]
MAY_NOT_BE_CALLED = [
    *("0.0.0.1", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "168.63.129.16", "169.254.169.254"),
    *("172.16.0.1", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255"),
    *("198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::c000:201", "::ffff:808:808", "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1"),
    *("2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff::1", "2001:db8::1", "2002:808:808::1", "3fff:fff::1"),
    *("4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1"),
]


@pytest.mark.parametrize(("written", "expected"), SPELLINGS)
def test_an_address_has_one_spelling(written: str, expected: str) -> None:
    assert spelled(ip_address(written)) == expected
    assert ip_address(spelled(ip_address(written))) == ip_address(written)


@pytest.mark.parametrize(("written", "expected"), NETWORKS)
def test_a_network_is_spelled_like_its_address(written: str, expected: str) -> None:
    assert spelled(ip_network(written)) == expected


@given(st.lists(st.sampled_from([0, 0, 0, 1, 0xFFFF, 0x2001]), min_size=8, max_size=8))
def test_it_is_pythons_spelling_where_no_ipv4_address_is_inside(groups: list[int]) -> None:
    address = IPv6Address(sum(group << 16 * index for index, group in enumerate(groups)))
    if address.ipv4_mapped is None:
        assert spelled(address) == str(address)
        assert spelled(IPv6Interface((address, 128)).network) == f"{address}/128"


@pytest.mark.parametrize("address", MAY_BE_CALLED)
def test_a_public_address_may_be_called(address: str) -> None:
    assert refusal_of_target(ip_address(address)) is None


@pytest.mark.parametrize("address", MAY_NOT_BE_CALLED)
def test_no_other_address_may_be_called(address: str) -> None:
    assert refusal_of_target(ip_address(address))
