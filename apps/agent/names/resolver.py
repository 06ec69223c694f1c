"""Names of servers: HAProxy asks the agent, which looks at each address before HAProxy gets it.

HAProxy connects to whatever a name server answers, and a name that led to a shop may lead to this machine or to a
metadata service a minute later. The agent passes questions on to the machine's name servers and leaves out of their
answers what the live bundle refuses (`maps/refused-addresses.map`) and the addresses of this machine. While the agent
is away HAProxy keeps the addresses that it has (`hold timeout` in haproxy.cfg).
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import secrets
import socket
import socketserver
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from apps.agent.events import Events
from apps.agent.names import dns as names
from apps.agent.process.sockets import is_here
from apps.agent.release.releases import stamp_of, write_file
from apps.agent.settings import Settings

REFUSED_ADDRESSES = "maps/refused-addresses.map"
RESOLV_CONF = Path("/etc/resolv.conf")
NAMESERVER = re.compile(r"^nameserver\s+(\S+)", re.MULTILINE)
DNS_PORT = 53
PATIENCE = 1.0  # seconds for each name server; HAProxy asks again after one second
AT_ONCE = 64  # what comes beyond is not answered, and HAProxy asks again
KEPT = 1000  # names of which it is remembered why they lead nowhere
LOOPBACK = ipaddress.ip_address("127.0.0.1")

NameServer = tuple[str, int]
Refused = list[tuple[names.Network, str]]
Rule = Callable[[names.Address, Refused], str]


class Resolver:
    """Answers on a loopback port, the same one after a restart, because the running HAProxy knows it.

    Name servers are those of the settings, or of resolv.conf; `rule` is `refusal`.
    """

    def __init__(self, settings: Settings, live: Path, events: Events, rule: Rule) -> None:
        self._live = live
        self._events = events
        self._asked = settings.resolvers
        self._rule = rule
        self._refused: dict[tuple[str, int], str] = {}  # name and kind → where it leads and may not
        self._server = _listen(settings.state_dir / "resolver", self)
        # It looks five times a second whether it is to end: an agent that is stopped waits for it.
        threading.Thread(target=self._server.serve_forever, args=(0.2,), name="resolver", daemon=True).start()

    @property
    def address(self) -> str:
        """`127.0.0.1:port`."""
        return "{}:{}".format(*self._server.server_address)

    def close(self) -> None:
        """Leave the port."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, message: bytes) -> bytes:
        """What HAProxy gets for its question; raises NotDNS, OSError, or ValueError for a damaged bundle.

        REFUSED, after which HAProxy gives an address up, means that the name leads only where it may not; NXDOMAIN
        that it leads nowhere. Any other failure is no reason to give up what it led to before.
        """
        question = names.read_question(message)
        code, found = self._look_up(question)
        good = [each for each in found if not self._refusal(each.address)]
        self._note(question, found if found and not good else [])
        if good:
            return names.answer(question, names.SUCCESS, good)
        if code not in (names.SUCCESS, names.NXDOMAIN):
            return names.answer(question, names.SERVFAIL, [])
        return names.answer(question, names.REFUSED if self._why(question.name) else names.NXDOMAIN, [])

    def why_unresolved(self, name: str) -> str:
        """Why a name has no address now, in words."""
        refused = self._why(name)
        return (
            f"{name} leads to {refused}, where no server of this fleet may be" if refused else f"{name} has no address"
        )

    def _why(self, name: str) -> str:
        return next(filter(None, (self._refused.get((name, kind)) for kind in names.FAMILIES)), "")

    def may_stay(self, address: str, release: Path) -> bool:
        """Whether a name may go on leading to an address under a release; raises ValueError for a damaged one."""
        try:
            return not self._rule(ipaddress.ip_address(address), self._refused_by(release))
        except OSError:
            return False  # it has no names

    def _refused_by(self, release: Path) -> Refused:
        path = release / REFUSED_ADDRESSES
        return _read(path, stamp_of(path))

    def _refusal(self, address: names.Address) -> str:
        return self._rule(address, self._refused_by(self._live))

    def _note(self, question: names.Question, found: list[names.Found]) -> None:
        """Remember where a name leads and may not; nothing where nothing was found there."""
        key = (question.name, question.kind)
        refused = f"{found[0].address} ({self._refusal(found[0].address)})" if found else ""
        if refused and self._refused.get(key) != refused and len(self._refused) < KEPT:
            self._refused[key] = refused
            self._events.add("error", self.why_unresolved(question.name))
        elif not refused:
            self._refused.pop(key, None)

    def _look_up(self, question: names.Question) -> tuple[int, list[names.Found]]:
        """Ask one name server after the other; the last one's failure counts."""
        for server in self._asked or _name_servers():
            with contextlib.suppress(OSError, names.NotDNS):
                return _ask(server, question)
        return names.SERVFAIL, []


@lru_cache(maxsize=4)
def _read(path: Path, _stamp: tuple[int, int, int]) -> Refused:
    return names.read_refused(path.read_text())


def refusal(address: names.Address, refused: Refused) -> str:
    """The word for why a name may not lead there; empty when it may.

    Where loopback is refused, so is every other address of this machine.
    """
    word = names.refusal(address, refused)
    if not word and names.refusal(LOOPBACK, refused) and is_here(str(address)):
        return "this machine"
    return word


def _name_servers() -> list[NameServer]:
    try:
        return [(found, DNS_PORT) for found in NAMESERVER.findall(RESOLV_CONF.read_text())]
    except OSError:
        return []


def _ask(server: NameServer, question: names.Question) -> tuple[int, list[names.Found]]:
    """From a port of its own, under a number that nobody can guess; raises OSError and NotDNS."""
    number = secrets.randbelow(1 << 16)
    with socket.socket(_family(server[0]), socket.SOCK_DGRAM) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(server)
        connection.send(names.query(question, number))
        return names.read_answer(connection.recv(names.LARGEST), question, number)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


class _Handler(socketserver.BaseRequestHandler):
    """One question; what cannot be answered is left, and HAProxy asks again."""

    server: _Server

    def handle(self) -> None:
        message, connection = self.request
        with contextlib.suppress(OSError, ValueError):
            connection.sendto(self.server.resolver.answer(message), self.client_address)


class _Server(socketserver.ThreadingUDPServer):
    """A thread for each question, as many at once as there are seats."""

    daemon_threads = True
    max_packet_size = names.LARGEST

    def __init__(self, address: tuple[str, int], resolver: Resolver) -> None:
        self.resolver = resolver
        self._seats = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._seats.acquire(blocking=False):
            super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._seats.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A question that went wrong is asked again."""


def _listen(remembered: Path, resolver: Resolver) -> _Server:
    """On the port of last time; on another one where that is taken, which drift then finds in node.cfg."""
    with contextlib.suppress(OSError, ValueError, OverflowError):
        return _Server((str(LOOPBACK), int(remembered.read_text())), resolver)
    server = _Server((str(LOOPBACK), 0), resolver)
    write_file(remembered, f"{server.server_address[1]}\n".encode())
    return server
