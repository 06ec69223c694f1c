"""The part of HPACK that a generator needs, by the examples of RFC 7541."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.drivers.load.hpack import request_block, status_of


@pytest.mark.parametrize(
    ("block", "status"),
    [
        ("88", 200),
        ("8d", 404),
        ("4803333032580770726976617465", 302),  # C.5.1
        ("4803333037c1c0bf", 307),  # C.5.2
        ("488264025885aec3771a4b", 302),  # C.6.1, Huffman
        ("4883640effc1c0bf", 307),  # C.6.2, Huffman
        ("2088", 200),  # a table of no size first
        ("3fe11f8e", 500),  # a table of 4 096 bytes first
        ("0803353033", 503),  # not to be indexed
        ("1803343239", 429),  # never to be indexed
    ],
)
def test_the_status_is_read_from_the_beginning(block: str, status: int) -> None:
    assert status_of(bytes.fromhex(block)) == status


@pytest.mark.parametrize(
    "block", ["", "20", "82", "c1", "48", "4803", "48033330", "480361626300", "4883ffffff", "4803303033"[:8], "ff"]
)
def test_what_is_no_status_is_refused(block: str) -> None:
    with pytest.raises(ValueError, match=r"header block|status"):
        status_of(bytes.fromhex(block))


@given(block=st.binary(max_size=20))
def test_anything_is_a_status_or_refused(block: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert 0 <= status_of(block) <= 999


def test_a_request_is_as_in_the_specification() -> None:
    block = request_block("GET", "http", "www.example.com", "/", {})
    assert block.hex() == "8286" + "110f7777772e6578616d706c652e636f6d" + "14012f"


def test_headers_are_lower_case_and_never_remembered() -> None:
    block = request_block("DELETE", "https", "a", "/b", {"X-Load-Test": "run-17"})
    assert block == b"\x12\x06DELETE\x87\x11\x01a\x14\x02/b\x10\x0bx-load-test\x06run-17"


def test_long_values_have_long_lengths() -> None:
    block = request_block("GET", "http", "a", "/", {"x": "y" * 1337})
    assert block.endswith(b"\x10\x01x\x7f\xba\x09" + b"y" * 1337)
