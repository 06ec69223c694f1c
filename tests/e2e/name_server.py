"""A small real name server for tests: answers over UDP from dictionaries that the test changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, UDPServer

import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

from tests.serving import answering


class NameServer(UDPServer):
    """By name without its final dot: `records` are texts, `addresses` IPv4 and IPv6, `aliases` another name, and
    `services` SRV as in a zone file.

    Every other name does not exist. It is silent, or loses the next few questions.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Question)
        self.records: dict[str, list[str]] = {}
        self.addresses: dict[str, list[str]] = {}
        self.aliases: dict[str, str] = {}
        self.services: dict[str, list[str]] = {}
        self.silent, self.loses = False, 0
        self.asked: list[str] = []
        self.address = f"127.0.0.1:{self.server_address[1]}"

    def answer_to(self, question: dns.message.Message) -> dns.message.Message | None:
        """What it says to a question, if anything."""
        answer = self._answer(question)
        self.loses, lost = max(0, self.loses - 1), self.loses > 0
        return None if self.silent or lost else answer

    def _answer(self, question: dns.message.Message) -> dns.message.Message:
        answer = dns.message.make_response(question, recursion_available=True)
        asked = question.question[0]
        name = asked.name.to_text(omit_final_dot=True)
        self.asked.append(name)
        owner = asked.name
        if name in self.aliases:
            owner = dns.name.from_text(self.aliases[name])
            answer.answer.append(dns.rrset.from_text(asked.name, 1, "IN", "CNAME", owner.to_text()))
            name = self.aliases[name]
            if asked.rdtype == dns.rdatatype.CNAME:
                return answer
        texts = [f'"{text}"' for text in self.records.get(name, ())]
        addresses, services = self.addresses.get(name, ()), self.services.get(name, [])
        found = {
            dns.rdatatype.TXT: texts,
            dns.rdatatype.A: [address for address in addresses if ":" not in address],
            dns.rdatatype.AAAA: [address for address in addresses if ":" in address],
            dns.rdatatype.SRV: services,
        }.get(asked.rdtype, [])
        if not texts and not addresses and not services:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif found:
            answer.answer.append(dns.rrset.from_text(owner, 1, "IN", dns.rdatatype.to_text(asked.rdtype), *found))
        return answer


class Question(BaseRequestHandler):
    """One datagram."""

    server: NameServer

    def handle(self) -> None:
        """Send the answer back."""
        datagram, sockets = self.request
        if answer := self.server.answer_to(dns.message.from_wire(datagram)):
            sockets.sendto(answer.to_wire(), self.client_address)


@contextmanager
def name_server() -> Iterator[NameServer]:
    """A running name server on a free port of this machine."""
    with NameServer() as server, answering(server):
        yield server
