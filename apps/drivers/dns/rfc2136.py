"""Name servers that speak RFC 2136 (BIND, Knot, Windows …): TSIG on everything, TCP only.

A write is one UPDATE message whose prerequisites say what was seen before, so that the server itself refuses it when
somebody else was faster (RFC 2136, 2.4); a zone is read by a transfer (RFC 5936), or name by name where that is
refused.
"""

from __future__ import annotations

import binascii
import ipaddress
from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdataclass
import dns.rdataset
import dns.rdatatype
import dns.resolver
import dns.tsig
import dns.tsigkeyring
import dns.update
import dns.xfr
import dns.zone

from apps.compiler.address_spelling import spelled
from apps.drivers.dns.contract import Contents, Edit, RecordSet, Refused, ServerTarget, Unreachable
from apps.drivers.dns.records import canonical_text, manageable

WORDS = {
    dns.rcode.REFUSED: "rejects the update of {domain}: the key may not, or an MX or NS names a host without address",
    dns.rcode.NOTAUTH: "does not serve {domain}, or does not know the key",
    dns.rcode.NOTZONE: "found a name that is not in {domain}",
    dns.rcode.NXRRSET: "has changed since it was read",
    dns.rcode.YXRRSET: "has changed since it was read",
    dns.rcode.FORMERR: "did not understand the update",
    dns.rcode.NOTIMP: "does not accept updates",
}
WRONG_KEY = (dns.tsig.PeerError, dns.tsig.BadSignature, dns.tsig.BadKey)


class _Key(TypedDict):
    """What signs a message, by the names of dnspython."""

    keyring: dict[dns.name.Name, dns.tsig.Key] | None
    keyname: dns.name.Name | None
    keyalgorithm: dns.name.Name


class Rfc2136Driver:
    """One zone on a server at `host:port`."""

    at_once = 200  # a message of TCP holds 65 535 bytes

    def __init__(self, target: ServerTarget) -> None:
        self._target = target
        self._origin = dns.name.from_text(target.domain)
        # Record sets as they stand on the wire: a text may be in other pieces there than we write it.
        self._seen: dict[tuple[str, str], dns.rdataset.Rdataset] = {}

    def read(self, known: Sequence[tuple[str, str]]) -> Contents:
        """By transfer, else by asking for each known name and type."""
        try:
            return Contents(self._transfer(), complete=True)
        except dns.xfr.TransferError:
            return Contents(self._ask_each(known), complete=False)

    def check(self) -> Contents:
        """A transfer needs another right than an update, so an update without a change is sent as well."""
        found = self.read(())
        self.write(())
        return found

    def write(self, edits: Sequence[Edit]) -> None:
        """One message, which the server does as a whole or not at all (RFC 2136, 3.7)."""
        answer = self._query(self._message(edits))
        if answer.rcode() != dns.rcode.NOERROR:
            said = WORDS.get(answer.rcode(), f"answered {dns.rcode.to_text(answer.rcode())}")
            raise Refused(f"The name server {self._target.server} {said.format(domain=self._target.domain)}.")

    def _message(self, edits: Sequence[Edit]) -> dns.update.UpdateMessage:
        message = dns.update.UpdateMessage(self._origin, **self._key())
        for edit in edits:
            name = dns.name.from_text(edit.name)
            if edit.before is None:
                message.absent(name, edit.type)
            else:
                message.present(name, self._as_seen(edit.before))
        for edit in edits:
            message.delete(dns.name.from_text(edit.name), edit.type)
        for edit in edits:
            if edit.after is not None:
                message.add(dns.name.from_text(edit.name), _rdataset(edit.after))
        return message

    def _as_seen(self, before: RecordSet) -> dns.rdataset.Rdataset:
        """What was read, as the server has it, with the TTL 0 that a prerequisite wants (RFC 2136, 2.4.2)."""
        seen = self._seen.get((before.name, before.type))
        if seen is None or _values(seen) != before.values:
            return _rdataset(replace(before, ttl=0))
        return dns.rdataset.from_rdata_list(0, list(seen))

    def _record_set(self, name: dns.name.Name, rdataset: dns.rdataset.Rdataset) -> RecordSet:
        text = name.to_text(omit_final_dot=True).lower()
        found = RecordSet(text, dns.rdatatype.to_text(rdataset.rdtype), rdataset.ttl, _values(rdataset))
        self._seen[found.name, found.type] = rdataset
        return found

    def _transfer(self) -> tuple[RecordSet, ...]:
        zone = dns.zone.Zone(self._origin, relativize=False)
        query, _ = dns.xfr.make_query(zone, **self._key())
        host, port = self._address()
        seconds = self._target.seconds
        try:
            dns.query.inbound_xfr(host, zone, query, port=port, timeout=seconds, lifetime=4 * seconds)
        except dns.xfr.TransferError:
            raise
        except WRONG_KEY as error:
            raise self._bad_key(error) from None
        except (dns.exception.DNSException, OSError, EOFError) as error:
            raise self._silent(error) from None
        found = (self._record_set(name, rdataset) for name, node in zone.nodes.items() for rdataset in node.rdatasets)
        return tuple(sorted(each for each in found if manageable(each.name, each.type, self._target.domain)))

    def _ask_each(self, known: Sequence[tuple[str, str]]) -> tuple[RecordSet, ...]:
        found = []
        for name, rdtype in sorted(set(known)):
            asked = dns.name.from_text(name)
            query = dns.message.make_query(asked, rdtype)
            query.flags &= ~dns.flags.RD
            key = self._key()
            if key["keyring"] is not None:
                query.use_tsig(key["keyring"], key["keyname"], algorithm=key["keyalgorithm"])
            answer = self._query(query)
            rrset = answer.get_rrset(dns.message.ANSWER, asked, dns.rdataclass.IN, dns.rdatatype.from_text(rdtype))
            if rrset is not None:
                found.append(self._record_set(asked, rrset))
        return tuple(sorted(found))

    def _query(self, message: dns.message.Message) -> dns.message.Message:
        host, port = self._address()
        try:
            return dns.query.tcp(message, host, timeout=self._target.seconds, port=port)
        except dns.exception.TooBig:
            raise Refused("What is to be written is larger than a message may be (65 535 bytes).") from None
        except WRONG_KEY as error:
            raise self._bad_key(error) from None
        except (dns.exception.DNSException, OSError, EOFError) as error:
            raise self._silent(error) from None

    def _address(self) -> tuple[str, int]:
        """The address and port to connect to; a name is resolved each time."""
        host, _, port = self._target.server.rpartition(":")
        host = host.strip("[]")
        try:
            return spelled(ipaddress.ip_address(host)), int(port)
        except ValueError:
            pass
        try:
            answer = dns.resolver.resolve_name(host, lifetime=self._target.seconds)
        except (dns.exception.DNSException, OSError):
            raise Unreachable(f"The name server {self._target.server} has no address.") from None
        for address in answer.addresses():
            return address, int(port)
        raise Unreachable(f"The name server {self._target.server} has no address.")

    def _key(self) -> _Key:
        if not self._target.secret:
            return {"keyring": None, "keyname": None, "keyalgorithm": dns.tsig.default_algorithm}
        try:
            keyring = dns.tsigkeyring.from_text({self._target.key_name: self._target.secret})
        except (binascii.Error, ValueError, dns.exception.DNSException):
            raise Refused(f"The key {self._target.key_name} is not base64: check the reference.") from None
        return {
            "keyring": keyring,
            "keyname": dns.name.from_text(self._target.key_name),
            "keyalgorithm": dns.name.from_text(self._target.key_algorithm),
        }

    def _bad_key(self, error: Exception) -> Refused:
        return Refused(
            f"The name server {self._target.server} does not accept the key {self._target.key_name} "
            f"({type(error).__name__}): compare name, algorithm and secret, and both clocks."
        )

    def _silent(self, error: Exception) -> Unreachable:
        return Unreachable(f"The name server {self._target.server} did not answer ({type(error).__name__}).")


def _rdataset(found: RecordSet) -> dns.rdataset.Rdataset:
    return dns.rdataset.from_text_list(dns.rdataclass.IN, found.type, found.ttl, list(found.values))


def _values(rdataset: dns.rdataset.Rdataset) -> tuple[str, ...]:
    return tuple(sorted(canonical_text(each) for each in rdataset))
