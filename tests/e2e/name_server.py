"""A small real name server for tests: answers TXT questions over UDP from a dictionary that the test changes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset


class NameServer:
    """`records` maps a name without its final dot to the texts at it; every other name does not exist."""

    def __init__(self) -> None:
        self.records: dict[str, list[str]] = {}
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
        texts = self.records.get(name)
        if texts is None:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif asked.rdtype == dns.rdatatype.TXT:
            answer.answer.append(dns.rrset.from_text(asked.name, 1, "IN", "TXT", *(f'"{text}"' for text in texts)))
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
