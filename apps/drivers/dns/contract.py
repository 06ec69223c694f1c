"""The DNS border: what every driver of an authoritative name server promises.

Three implementations stand behind it, chosen in `registry.py`: RFC 2136 with TSIG (`rfc2136.py`), the API of PowerDNS
(`powerdns.py`), and an honest fake in memory (`memory.py`); zones on Route 53 belong to their stack.
`tests/conformance/` runs one suite against all. Drivers know the world and nothing of Django.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class DnsError(Exception):
    """The name server did not do what it was asked; `message` is a sentence for operators."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unreachable(DnsError):
    """Nobody answered, or not in time: try again, it may or may not have been done."""


class Refused(DnsError):
    """The server said no (a wrong key, not its zone, a record that it does not take); it serves what it served."""


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """How to reach the server of a zone: `host:port` for RFC 2136, a URL for PowerDNS, `memory://name`.

    No answer is waited for longer than `seconds`. `domain` has no final dot. `key_name` and `key_algorithm`
    (`hmac-sha256`) belong to TSIG; `secret` is the key or the API's key, read from the environment for this call only.
    """

    domain: str
    server: str
    secret: str = ""
    key_name: str = ""
    key_algorithm: str = "hmac-sha256"
    seconds: float = 10.0


@dataclass(frozen=True, slots=True, order=True)
class RecordSet:
    """All values of one name and type: `name` is absolute without the final dot, values in the form of a zone file."""

    name: str
    type: str
    ttl: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """One record set as it must become (`after`), or None to remove it; `before` is what the caller saw there."""

    name: str
    type: str
    before: RecordSet | None
    after: RecordSet | None


@dataclass(frozen=True, slots=True)
class Contents:
    """What a zone holds: record sets of the types that can be managed, without SOA and the zone's own NS.

    `complete` is False where the server gives no whole zone away: then only what was asked for by name is there.
    """

    records: tuple[RecordSet, ...]
    complete: bool = True


class DnsDriver(Protocol):
    """One zone on one server. Every call may raise Unreachable or Refused; none blocks longer than its timeout."""

    @property
    def at_once(self) -> int:
        """How many edits one write should have at most; more are written in several, each whole names."""

    def read(self, known: Sequence[tuple[str, str]]) -> Contents:
        """The zone; `known` are names and types to ask for one by one where it cannot be had as a whole."""

    def check(self) -> Contents:
        """The zone, as far as it is given away, once the server has taken the key; nothing is written."""

    def write(self, edits: Sequence[Edit]) -> None:
        """All of the edits or none. Raises Refused when something else is served now than a `before` says."""
