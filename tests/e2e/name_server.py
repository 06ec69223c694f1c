"""A small real name server for tests: answers over UDP from dictionaries that the test changes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset


class NameServer:
    """By name without its final dot: `records` are texts, `addresses` IPv4 and IPv6, `aliases` another name, and
    `services` SRV as in a zone file.

    Every other name does not exist.
    """

    def __init__(self) -> None:
        self.records: dict[str, list[str]] = {}
        self.addresses: dict[str, list[str]] = {}
        self.aliases: dict[str, str] = {}
        self.services: dict[str, list[str]] = {}
        self.silent = False
        self.asked: list[str] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def serve(self) -> None:
        """Answer until the socket is closed."""
        while True:
            try:
                question, client = self._socket.recvfrom(4096)
            except OSError:
                return
            answer = self._answer(dns.message.from_wire(question))
            if not self.silent:
                self._socket.sendto(answer.to_wire(), client)

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

    def close(self) -> None:
        """End `serve`."""
        self._socket.close()


@contextmanager
def name_server() -> Iterator[NameServer]:
    """A running name server on a free port of this machine."""
    server = NameServer()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
