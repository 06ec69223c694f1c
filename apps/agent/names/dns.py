"""Names of servers: questions and answers of DNS (RFC 1035) and which addresses may be answered.

Only what HAProxy needs is passed on: one question for addresses, and the addresses that the name leads to. The rest of
an answer, the names on the way among it, is left out.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

A, CNAME, AAAA, INTERNET = 1, 5, 28, 1
FAMILIES = {A: (socket.AF_INET, 4), AAAA: (socket.AF_INET6, 16)}
SUCCESS, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5
HEADER = struct.Struct("!HHHHHH")
RECORD = struct.Struct("!HHIH")
# The room that haproxy.cfg asks for (`accepted_payload_size`); what does not fit is left out.
LARGEST = 1232
LONGEST_CHAIN = 16
LARGEST_NAME = 255

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


class NotDNS(ValueError):
    """A message that is none, or is not meant for this question."""


@dataclass(frozen=True)
class Question:
    """What HAProxy asks: `name` in lower case, `kind` A or AAAA; `raw` as it stands in the message."""

    number: int
    name: str
    kind: int
    raw: bytes


@dataclass(frozen=True)
class Found:
    """One address of the name, with seconds to live."""

    address: Address
    seconds: int


def read_question(message: bytes) -> Question:
    """The one question of a query for addresses; raises NotDNS."""
    number, flags, questions = _header(message)[:3]
    if flags & 0xF800 or questions != 1:
        raise NotDNS("no query of one question")
    name, end = _name(message, HEADER.size)
    kind, family = struct.unpack("!HH", _bytes(message, end, 4))
    if kind not in FAMILIES or family != INTERNET:
        raise NotDNS("no question for an address")
    return Question(number, name, kind, message[HEADER.size : end + 4])


def query(question: Question, number: int) -> bytes:
    """The same question for the machine's resolver, under another number."""
    extension = b"\0" + RECORD.pack(41, LARGEST, 0, 0)  # EDNS(0), RFC 6891
    return HEADER.pack(number, 0x0100, 1, 0, 0, 1) + question.raw + extension


def read_answer(message: bytes, question: Question, number: int) -> tuple[int, list[Found]]:
    """Its response code, and the addresses at the end of the chain of names; raises NotDNS when it is another's."""
    found, flags, questions, answers = _header(message)[:4]
    if found != number or not flags & 0x8000 or questions != 1:
        raise NotDNS("no answer to this question")
    name, end = _name(message, HEADER.size)
    if name != question.name or message[end : end + 4] != question.raw[-4:]:
        raise NotDNS("the answer to another question")
    records = list(_records(message, end + 4, answers))
    for _ in range(LONGEST_CHAIN):
        onward = [at for owner, kind, _, at, _ in records if (owner, kind) == (name, CNAME)]
        if not onward:
            break
        name = _name(message, onward[0])[0]
    size = FAMILIES[question.kind][1]
    here = [record for record in records if record[:2] == (name, question.kind) and record[4] == size]
    return flags & 0xF, [Found(ipaddress.ip_address(message[at : at + size]), life) for _, _, life, at, _ in here]


def answer(question: Question, code: int, found: list[Found]) -> bytes:
    """What HAProxy gets."""
    head = HEADER.size + len(question.raw)
    records = []
    for each in found[: (LARGEST - head) // (2 + RECORD.size + 16)]:
        packed = each.address.packed
        records.append(b"\xc0\x0c" + RECORD.pack(question.kind, INTERNET, each.seconds, len(packed)) + packed)
    return HEADER.pack(question.number, 0x8180 | code, 1, len(records), 0, 0) + question.raw + b"".join(records)


def read_refused(text: str) -> list[tuple[Network, str]]:
    """`network word` per line, as in `maps/refused-addresses.map`; raises ValueError."""
    lines = (line.partition(" ") for line in text.splitlines() if line)
    return [(ipaddress.ip_network(network), word) for network, _, word in lines]


def refusal(address: Address, refused: list[tuple[Network, str]]) -> str:
    """The word for why the address may not be used; empty when it may."""
    return next((word for network, word in refused if address in network), "")


def _header(message: bytes) -> tuple[int, ...]:
    return HEADER.unpack(_bytes(message, 0, HEADER.size))


def _records(message: bytes, at: int, count: int) -> Iterator[tuple[str, int, int, int, int]]:
    """Owner, kind, seconds to live, and where its data begin and how long they are."""
    for _ in range(count):
        owner, at = _name(message, at)
        kind, family, seconds, size = RECORD.unpack(_bytes(message, at, RECORD.size))
        at += RECORD.size
        _bytes(message, at, size)
        if family == INTERNET:
            yield owner, kind, seconds, at, size
        at += size


def _name(message: bytes, at: int) -> tuple[str, int]:
    """A name in lower case, and where it ends; pointers only lead backwards, so that none leads round."""
    labels: list[bytes] = []
    end, before = 0, at
    while True:
        size = _bytes(message, at, 1)[0]
        if size >= 0xC0:
            target = struct.unpack("!H", _bytes(message, at, 2))[0] & 0x3FFF
            if target >= before:
                raise NotDNS("a name that leads onward")
            end, at, before = end or at + 2, target, target
        elif size:
            labels.append(_bytes(message, at + 1, size).lower())
            at += 1 + size
            if size > 63 or sum(map(len, labels)) + len(labels) > LARGEST_NAME:
                raise NotDNS("a name that is too long")
        else:
            return b".".join(labels).decode("latin-1"), end or at + 1


def _bytes(message: bytes, at: int, size: int) -> bytes:
    found = message[at : at + size]
    if len(found) != size:
        raise NotDNS("a message that ends too early")
    return found
