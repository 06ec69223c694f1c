"""What of a line stays unknown, by the wish of its account: addresses of clients, and values of names of secrets; pure.

It is done before a line is stored or forwarded, so nobody has to trust a page or a query to leave something out.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import unquote

from apps.compiler.address_spelling import spelled
from apps.drivers.logs.contract import Record

MASK = "***"
# Without a word from its account.
SECRETS = (
    "apikey", "authorization", "credential", "jsessionid", "jwt", "key", "passwd", "password", "pwd", "secret",
    "sessionid", "sig", "signature", "token",
)  # fmt: skip
# An address within an address is encoded once more; what is encoded more often than this is left as it is.
DEPTH = 3
# Clients choose names: thousands of long ones would have the memory.
LONGEST_REMEMBERED = 64
_QUERY, _PATH, _HEADER = re.compile(r"([&])"), re.compile(r"([/&])"), re.compile(r"([&,\s])")
_NAMED = re.compile(r"(?:^|(?<=[?;/#=]))([^?;/#=]+)=(?=.)", re.DOTALL)
# An address as a word of a header, also in brackets or with a port: `for="[2001:db8::1]:443"`.
_ADDRESS = re.compile(r"""(?<![^\s,;="\[])(?:[0-9]+(?:\.[0-9]+){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]+)(?![^\s,;"\]:])""")
# `access_token`, `X-Api-Key`, `apiKey`, `APIKey`, `user[password]`
_BORDER = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Masking:
    """Whether only the network of a client is kept, and the names whose values are not."""

    addresses: bool = False
    names: tuple[str, ...] = ()

    def of(self, record: Record) -> Record:
        """The record as it may be kept."""
        if self.addresses:
            known = {name: _ADDRESS.sub(_network_of, value) for name, value in record.headers.items()}
            record = replace(record, client=masked_address(record.client), headers=known)
        if not self.names or not (record.query or record.headers or "=" in record.path or "%" in record.path):
            return record
        path, query = self._without(record.path, _PATH), self._without(record.query, _QUERY)
        headers = {name: self._header(name, value) for name, value in record.headers.items()}
        # A copy of a record costs more than the look at it, and most lines have nothing to hide.
        if path == record.path and query == record.query and headers == record.headers:
            return record
        return replace(record, path=path, query=query, headers=headers)

    def _header(self, name: str, value: str) -> str:
        if value and self._is_secret(name):
            return MASK
        pieces = _HEADER.split(value)
        return _joined(pieces, [self._piece(each) if _may_name(each) else each for each in pieces])

    def _without(self, text: str, between: re.Pattern[str]) -> str:
        """The text with a mask for each value of such a name, also where an address within it has the name."""
        if "=" not in text and "%" not in text:
            return text
        return "".join(self._piece(each) if _may_name(each) else each for each in between.split(text))

    def _piece(self, piece: str) -> str:
        if end := self._secret_after(piece):
            return piece[:end] + MASK
        (name, equals), plain = piece.partition("=")[:2], piece
        for _ in range(DEPTH):
            encoded, plain = plain, unquote(plain)
            if encoded == plain:
                break
            if any(self._secret_after(each) for each in plain.split("&")):
                return f"{name}={MASK}" if equals else MASK
        return piece

    def _secret_after(self, piece: str) -> int:
        """Where the value of the first such name begins; 0 where there is none."""
        return next((found.end() for found in _NAMED.finditer(piece) if self._is_secret(found[1])), 0)

    def _is_secret(self, name: str) -> bool:
        known = len(name) <= LONGEST_REMEMBERED
        return _names_a_secret(self.names, name) if known else _names_a_secret.__wrapped__(self.names, name)


NOTHING = Masking()


def _may_name(piece: str) -> bool:
    """What has neither can name nothing: most words of a header."""
    return "=" in piece or "%" in piece


def _joined(pieces: Sequence[str], shown: Sequence[str]) -> str:
    """Pieces of a header; a masked value goes on until the next name: it may have commas, and in quotes spaces."""
    kept: list[str] = []
    hides, gap = False, ""
    for piece, text in zip(pieces, shown, strict=True):
        if hides and piece != "&" and not _may_name(piece):
            gap = piece if _HEADER.fullmatch(piece) else gap
            continue
        kept.append(text if piece == "&" else gap + text)
        hides, gap = text != piece, ""
    return "".join(kept)


@lru_cache(maxsize=1024)
def _spelled(name: str) -> str:
    """`apiKey` → `-api-key-`, in which `-key-` is found."""
    return f"-{'-'.join(part.lower() for part in _BORDER.split(name) if part)}-"


@lru_cache(maxsize=4096)
def _names_a_secret(names: tuple[str, ...], name: str) -> bool:
    """Names come again and again, values do not, so only names are remembered."""
    parts = _spelled(unquote(name))
    return any(_spelled(each) in parts for each in names)


def masked(records: Iterable[Record], wishes: Mapping[int, Masking], usual: Masking) -> Iterator[Record]:
    """Each record as its account wants it kept; `usual` is of those that never said anything."""
    return (wishes.get(record.account, usual).of(record) for record in records)


def _network_of(found: re.Match[str]) -> str:
    return masked_address(found[0]) or found[0]


def masked_address(client: str) -> str:
    """The network that an address is in: /24 of IPv4, /48 of IPv6."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return ""
    network = ipaddress.ip_network((address, 24 if address.version == 4 else 48), strict=False)
    return spelled(network.network_address)
