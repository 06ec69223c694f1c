"""Hosts: a name or an address, with or without a port."""

from __future__ import annotations

import pytest

from apps.core.addresses import is_address


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "[::1]", "[::1]:8000", "192.0.2.7:443"])
def test_an_address_is_known_with_and_without_a_port(host: str) -> None:
    assert is_address(host)


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "console.example.com", "1.example:80", "", ":80"])
def test_a_name_is_no_address(host: str) -> None:
    assert not is_address(host)
