"""Connections of tcp that a server sends round in a circle, asked of a real HAProxy: refused at the first return."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.shared import Protocol
from tests.e2e.rendered_proxy import PATIENCE_S, running
from tests.ports import address_of_this_machine
from tests.pure.compiler_fixtures import front, listener, pool, server, snapshot

pytestmark = pytest.mark.e2e
ENOUGH = 20


@dataclass
class Relay:
    """Stands for an address translation or another node: whatever comes goes to the listener, from `source`."""

    source: str
    door: socket.socket
    target: int = 0
    came: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.door.getsockname()[1])

    def serve(self) -> None:
        """Each connection opens one more, until there are enough; the last says so."""
        while True:
            try:
                stream, _ = self.door.accept()
            except OSError:
                return
            with self.lock:
                self.came += 1
            threading.Thread(target=self._pass_on, args=(stream,), daemon=True).start()

    def _pass_on(self, stream: socket.socket) -> None:
        with stream, contextlib.suppress(OSError):
            if self.came >= ENOUGH:
                stream.sendall(b"enough")
                return
            with socket.create_connection(("127.0.0.1", self.target), PATIENCE_S, (self.source, 0)) as onwards:
                onwards.sendall(stream.recv(100))
                while data := onwards.recv(100):
                    stream.sendall(data)


@contextmanager
def relay(source: str) -> Iterator[Relay]:
    """One that listens."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        made = Relay(source, door)
        thread = threading.Thread(target=made.serve, daemon=True)
        thread.start()
        yield made
        door.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE_S)


def bundle_with(door: int, *addresses: str) -> Bundle:
    """A tcp listener whose pool's only server is the relay."""
    pools = (pool(1, protocol=Protocol.TCP, servers=(server(1, address="127.0.0.1", port=door),)),)
    balancer = front(listeners=(listener(1, protocol=Protocol.TCP, default_pool_id="pool-1"),))
    done = compile_snapshot(snapshot(balancer, pools=pools, local_development=True, own_addresses=addresses))
    assert done.left_out == ()
    return done.output


def round_trip(directory: Path, *addresses: str) -> tuple[int, bytes]:
    """One client's connection: how often the relay was reached, and what the client got."""
    with relay(address_of_this_machine()) as made, running(bundle_with(made.port, *addresses), directory) as proxy:
        before, made.target = made.came, proxy.ports["lst-1"]
        with socket.create_connection(("127.0.0.1", made.target), PATIENCE_S) as client:
            client.sendall(b"x")
            answer = client.recv(100)
        return made.came - before, answer


def refused_at_once(directory: Path, *addresses: str) -> bool:
    """Whether the client gets nothing, and the server one connection: or two, with the look whether it listens."""
    came, answer = round_trip(directory, *addresses)
    return came <= 2 and answer == b""


def test_a_connection_that_comes_from_an_address_of_ours_is_refused_at_its_first_return(tmp_path: Path) -> None:
    assert refused_at_once(tmp_path, address_of_this_machine(), "203.0.113.0/24")


def test_so_it_is_where_the_address_is_one_of_a_network_of_ours(tmp_path: Path) -> None:
    network = ".".join((*address_of_this_machine().split(".")[:3], "0")) + "/24"
    assert refused_at_once(tmp_path, network)


def test_without_knowing_its_own_addresses_one_connection_goes_round_and_round(tmp_path: Path) -> None:
    came, answer = round_trip(tmp_path)
    assert came >= ENOUGH - 2
    assert answer == b"enough"


def test_more_addresses_than_a_line_holds_and_both_families_are_taken_by_haproxy(tmp_path: Path) -> None:
    many = [f"198.51.100.{number}" for number in range(100)] + ["2001:db8::1", "fd12::/64", address_of_this_machine()]
    assert refused_at_once(tmp_path, *many)
