"""The part of HPACK (RFC 7541) that a generator needs: requests without a table, of answers the status; pure.

A generator tells servers to use no dynamic table, so a block can be read from its beginning alone, where :status is.
"""

from __future__ import annotations

from collections.abc import Mapping

METHODS = {"GET": b"\x82", "POST": b"\x83"}
SCHEMES = {"http": b"\x86", "https": b"\x87"}
STATUSES = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}
DIGIT_BITS = {**{f"{digit:05b}": digit for digit in range(3)}, **{f"{digit + 22:06b}": digit for digit in range(3, 10)}}


def request_block(method: str, scheme: str, authority: str, path: str, headers: Mapping[str, str]) -> bytes:
    """The header block of a request; nothing in it is remembered by anybody on the way."""
    block = METHODS.get(method) or b"\x12" + _text(method)
    block += SCHEMES[scheme] + b"\x11" + _text(authority) + b"\x14" + _text(path)
    return block + b"".join(b"\x10" + _text(name.lower()) + _text(value) for name, value in headers.items())


def status_of(block: bytes) -> int:
    """The status that a block begins with; raises ValueError when it begins with something else."""
    place = 0
    while block[place : place + 1] and block[place] & 0xE0 == 0x20:  # a change of the table's size
        _, place = _number(block, place, 5)
    if place >= len(block):
        raise ValueError("An empty header block.")
    if block[place] & 0x80:
        index, _ = _number(block, place, 7)
        if index not in STATUSES:
            raise ValueError("A header block that does not begin with a status.")
        return STATUSES[index]
    index, place = _number(block, place, 6 if block[place] & 0x40 else 4)
    if index not in STATUSES:
        raise ValueError("A header block that does not begin with a status.")
    return _digits(block, place)


def _digits(block: bytes, place: int) -> int:
    """A text of three digits, plain or in Huffman's code."""
    coded = block[place : place + 1] >= b"\x80"
    length, place = _number(block, place, 7)
    text = block[place : place + length]
    if coded:
        bits = "".join(f"{each:08b}" for each in text)
        text = _decoded(bits)
    if len(text) != 3 or not text.isdigit():
        raise ValueError("A status that is no number of three digits.")
    return int(text)


def _decoded(bits: str) -> bytes:
    digits = b""
    while len(digits) < 3:
        for size in (5, 6):
            if bits[:size] in DIGIT_BITS:
                digits += b"%d" % DIGIT_BITS[bits[:size]]
                bits = bits[size:]
                break
        else:
            raise ValueError("A status that is no number of three digits.")
    return digits


def _text(text: str) -> bytes:
    return _coded(len(text), 7) + text.encode("ascii")


def _coded(number: int, bits: int) -> bytes:
    """A number with a prefix of so many bits (section 5.1)."""
    most = (1 << bits) - 1
    if number < most:
        return bytes((number,))
    found, number = bytearray((most,)), number - most
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _number(block: bytes, place: int, bits: int) -> tuple[int, int]:
    """The number at a place, and the place behind it; raises ValueError when it does not end."""
    most = (1 << bits) - 1
    if place >= len(block):
        raise ValueError("A header block that ends too early.")
    number = block[place] & most
    place += 1
    if number < most:
        return number, place
    for shift in range(0, 35, 7):
        if place >= len(block):
            break
        number += (block[place] & 0x7F) << shift
        place += 1
        if not block[place - 1] & 0x80:
            return number, place
    raise ValueError("A header block that ends too early.")
