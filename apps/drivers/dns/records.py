"""DNS records in one form: values as a zone file writes them with absolute names, so that two sides can be compared."""

from __future__ import annotations

from collections.abc import Iterable

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rdtypes.txtbase

from apps.drivers.dns.contract import RecordSet

# The types that can be managed; others (SOA, DNSSEC's own) belong to the server.
TYPES = ("A", "AAAA", "CAA", "CNAME", "MX", "NS", "SRV", "TXT")


class BadValue(ValueError):
    """A value that is none of its type, in words."""


def canonical(rdtype: str, value: str, domain: str) -> str:
    """The value with names made absolute (relative ones stand below `domain`) and one spelling for everything.

    Raises BadValue.
    """
    origin = dns.name.from_text(domain)
    try:
        found = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(rdtype), value, origin, relativize=False)
    except (dns.exception.DNSException, ValueError) as error:
        raise BadValue(f"{value!r} is no {rdtype} record: {error}") from None
    return canonical_text(found)


def canonical_text(found: dns.rdata.Rdata) -> str:
    """As `canonical`, for what was read from the wire: names in lower case; long texts in pieces of 255 bytes."""
    if isinstance(found, dns.rdtypes.txtbase.TXTBase):
        whole = b"".join(found.strings)
        pieces = [whole[at : at + 255] for at in range(0, len(whole), 255)] or [b""]
        found = type(found)(found.rdclass, found.rdtype, pieces)
        return found.to_text()
    return found.to_text().lower() if found.rdtype != dns.rdatatype.CAA else found.to_text()


def record_set(name: str, rdtype: str, ttl: int, values: Iterable[str], domain: str) -> RecordSet:
    """A record set in the form in which both sides are compared: lower-case name, sorted values. Raises BadValue."""
    found = tuple(sorted({canonical(rdtype, value, domain) for value in values}))
    return RecordSet(name.lower().rstrip("."), rdtype, ttl, found)


def manageable(name: str, rdtype: str, domain: str) -> bool:
    """Whether a record set is ours to read at all: of a known type, below the zone, not the zone's own NS."""
    below = name == domain or name.endswith(f".{domain}")
    return rdtype in TYPES and below and not (rdtype == "NS" and name == domain)
