"""The grammar of DNS records: labels, and values of each type as a zone file has them, in one spelling only.

dnspython reads each value; what it would write otherwise (relative names, escapes, comments, RFC 3597's `\\#`) is
refused with the spelling to use. Names in values are absolute and end with a dot, as in a zone file, so that none can
be mistaken for a name below the zone. Pure.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any

import dns.exception
import dns.rdata
import dns.rdataclass
import dns.rdatatype

from apps.compiler.address_spelling import spelled
from apps.compiler.grammar import GrammarError
from apps.compiler.model.stack import RecordType

APEX = "@"
TTLS = (30, 86_400)
MAX_VALUES = 100
MAX_VALUE = 4096
MAX_TXT = 4000
MAX_NAME = 253

_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_OWNER = re.compile(rf"@|(?:\*|{_LABEL})(?:\.{_LABEL})*")
_TARGET = re.compile(rf"(?:{_LABEL}\.)+(?=[a-z0-9-]*[a-z])[a-z0-9-]{{1,63}}\.")
_DOMAIN = re.compile(r"(?:(?!-)[a-z0-9-]{1,63}(?<!-)\.)+(?=[a-z0-9-]*[a-z])(?!-)[a-z0-9-]{2,63}(?<!-)")
_SERVICE = re.compile(r"_[a-z0-9-]{1,62}\._(?:tcp|udp|tls|sctp)(?:\..+)?")
_CAA_TAG = re.compile(r"(?:issue|issuewild|iodef|issuemail|issuevmc|contactemail|contactphone)")

EXAMPLES = {
    RecordType.A: "192.0.2.1",
    RecordType.AAAA: "2001:db8::1",
    RecordType.CNAME: "www.example.com.",
    RecordType.MX: "10 mail.example.com.",
    RecordType.TXT: '"v=spf1 -all"',
    RecordType.SRV: "10 5 5060 sip.example.com.",
    RecordType.CAA: '0 issue "letsencrypt.org"',
    RecordType.NS: "ns1.example.net.",
}


def domain(value: object) -> str:
    """A zone's name: two labels or more in lower case, without the final dot."""
    if isinstance(value, str) and len(value) <= MAX_NAME and _DOMAIN.fullmatch(value):
        return value
    if isinstance(value, str) and value.endswith("."):
        raise GrammarError("final_dot", "Write the domain without its final dot.")
    raise GrammarError("domain", "Write the domain in lower case with at least two labels, such as example.com.")


def label(value: object) -> str:
    """A name below the zone: `www`, `*.api`, `_dmarc`, or `@` for the zone's own name."""
    if isinstance(value, str) and len(value) <= MAX_NAME and _OWNER.fullmatch(value):
        return value
    if isinstance(value, str) and "*" in value:
        raise GrammarError("wildcard", "A wildcard is the first label alone: *, or *.api.")
    if isinstance(value, str) and value.endswith("."):
        raise GrammarError("final_dot", "Write the name below the zone, without the zone's domain and a final dot.")
    raise GrammarError(
        "label", "Use labels of lower-case letters, digits, _ and inner hyphens, or @ for the zone itself."
    )


def full_name(name: str, zone: str) -> str:
    """The absolute name of a label in a zone, without the final dot."""
    return zone if name == APEX else f"{name}.{zone}"


def base_of(name: str) -> str:
    """The label that a name with underscores speaks about: `_acme-challenge.www` → `www`, `_dmarc` → `@`."""
    parts = name.split(".")
    while parts and parts[0].startswith("_"):
        parts.pop(0)
    return ".".join(parts) or APEX


def is_delegate(name: str) -> bool:
    """Whether another name may send its ACME challenges there: `shop.example.com._acme-challenge`."""
    return "_acme-challenge" in name.split(".")[1:]


def fits_type(name: str, kind: RecordType) -> None:
    """Raise GrammarError where a label cannot have records of the type."""
    if name == APEX and kind in (RecordType.CNAME, RecordType.NS):
        detail = {
            RecordType.CNAME: "The zone's own name cannot be a CNAME; use A and AAAA, or follow a load balancer.",
            RecordType.NS: "The name servers of the zone itself belong to its server; delegate names below it.",
        }[kind]
        raise GrammarError("apex", detail)
    if kind is RecordType.SRV and not _SERVICE.fullmatch(name):
        raise GrammarError("service", "Name the service and its protocol: _sip._tcp, or _sip._tcp.voice.")
    if kind is RecordType.NS and name.startswith("*"):
        raise GrammarError("wildcard", "A wildcard cannot be delegated; name what you delegate.")


def value_of(kind: RecordType) -> Callable[[object], str]:
    """The grammar of one value of the type."""

    def allowed(value: object) -> str:
        text = plain_value(value)
        _CHECKS[kind](_rdata(kind, text))
        return text

    return allowed


def plain_value(value: object) -> str:
    """Printable ASCII, as every value of a record is."""
    if not isinstance(value, str) or not value:
        raise GrammarError("not_text", "Write the value as text, as a zone file has it.")
    if len(value) > MAX_VALUE:
        raise GrammarError("too_long", f"Use at most {MAX_VALUE} characters in one value.")
    if not value.isascii() or not value.isprintable():
        raise GrammarError("not_ascii", "Use plain ASCII without control characters; names are written in xn-- form.")
    return value


def _rdata(kind: RecordType, text: str) -> Any:
    try:
        found = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(kind), text, relativize=False)
        spelling = found.to_text()
    except (dns.exception.DNSException, ValueError, IndexError, KeyError, OverflowError):
        raise GrammarError(
            "record_value", f"Write the value as a zone file has it (such as {EXAMPLES[kind]})."
        ) from None
    if spelling != text:
        hint = spelling if len(spelling) <= 300 and spelling.isprintable() else EXAMPLES[kind]
        raise GrammarError("record_spelling", f"Spell the value as a zone file has it ({hint}).")
    return found


def _target(name: Any, *, may_be_root: bool = False) -> None:
    text = name.to_text()
    if text == "." and may_be_root:
        return
    if len(text) > MAX_NAME + 1 or not _TARGET.fullmatch(text):
        raise GrammarError("target", "Name the target in lower case with its final dot, such as mail.example.com.")


def _address(rdata: Any) -> None:
    address = ipaddress.ip_address(rdata.address)
    embeds_ipv4 = address.version == 6 and 0xFFFF < int(address) <= 0xFFFF_FFFF_FFFF
    if address.is_unspecified or address.is_multicast or embeds_ipv4:
        raise GrammarError("address", "Choose another address; clients cannot connect to this one.")
    if spelled(address) != rdata.address:
        raise GrammarError("record_spelling", f"Write the address in its canonical form ({spelled(address)}).")


def _text(rdata: Any) -> None:
    if sum(map(len, rdata.strings)) > MAX_TXT:
        raise GrammarError("too_long", f"Use at most {MAX_TXT} characters of text in one value.")
    if any(not 0x20 <= byte < 0x7F for string in rdata.strings for byte in string):
        raise GrammarError("not_ascii", "Use printable ASCII in texts; escapes of other bytes are not accepted.")


def _mail(rdata: Any) -> None:
    _target(rdata.exchange, may_be_root=rdata.preference == 0)


def _service(rdata: Any) -> None:
    _target(rdata.target, may_be_root=True)
    if rdata.port == 0 and rdata.target.to_text() != ".":
        raise GrammarError("port", "Name a port from 1 to 65535.")


def _authority(rdata: Any) -> None:
    if rdata.flags not in (0, 128):
        raise GrammarError("caa_flags", "Use 0, or 128 for critical.")
    if not _CAA_TAG.fullmatch(rdata.tag.decode("ascii", "replace")):
        raise GrammarError("caa_tag", "Use issue, issuewild, iodef, issuemail, issuevmc or contactemail.")
    if len(rdata.value) > 255 or any(not 0x20 <= byte < 0x7F for byte in rdata.value):
        raise GrammarError("caa_value", "Use at most 255 printable ASCII characters as the value.")


_CHECKS: dict[RecordType, Callable[[Any], None]] = {
    RecordType.A: _address,
    RecordType.AAAA: _address,
    RecordType.CNAME: lambda rdata: _target(rdata.target),
    RecordType.MX: _mail,
    RecordType.TXT: _text,
    RecordType.SRV: _service,
    RecordType.CAA: _authority,
    RecordType.NS: lambda rdata: _target(rdata.target),
}
