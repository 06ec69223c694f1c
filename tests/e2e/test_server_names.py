"""Servers that are given by a name, on a real HAProxy and a real name server: where the name may lead, and when."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from tests.conformance.inside import Inside, inside
from tests.conformance.real_agent import wait_until
from tests.e2e.name_server import NameServer, name_server
from tests.ports import spare_port
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e
NAME = "shop.example"
GOOD, BAD = "127.0.0.1", "127.0.0.2"
NOT_THERE = ("127.0.0.2/31",)  # stands for an address of the installation, which no server may have


class _Answer(BaseHTTPRequestHandler):
    """Counts, and says at which address it was asked."""

    server: Counting

    def do_GET(self) -> None:
        """200."""
        self.server.asked += 1
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Quiet."""


class Counting(ThreadingHTTPServer):
    """A server that knows how often it was asked."""

    daemon_threads = True
    asked = 0


@contextmanager
def serving(address: str, port: int) -> Iterator[Counting]:
    """One at an address of this machine."""
    found = Counting((address, port), _Answer)
    threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield found
    finally:
        found.shutdown()
        found.server_close()


@contextmanager
def env(**taken_away: Any) -> Iterator[tuple[NameServer, Inside, Counting, Counting]]:
    """A name server that a node asks, and a server of the same port at either address."""
    port = spare_port()
    with name_server() as names, serving(GOOD, port) as good, serving(BAD, port) as bad:
        address = (GOOD, int(names.address.rpartition(":")[2]))
        with inside({"resolvers": (address,)}, **taken_away) as node:
            yield names, node, good, bad


def compiled(node: Inside, to: Counting, more: int = 0, own: tuple[str, ...] = NOT_THERE) -> Bundle:
    """A pool with one server that has a name; `more` further pools make it another bundle."""
    pools = [pool(1, servers=(server(1, address=NAME, port=to.server_port),))]
    pools += [pool(number) for number in range(2, 2 + more)]
    balancer = front(route(1), listeners=(listener(1, port=node.port),))
    done = compile_snapshot(snapshot(balancer, pools=tuple(pools), local_development=True, own_addresses=own))
    assert done.left_out == ()
    return done.output


def status_of(node: Inside) -> dict[str, Any]:
    """What the agent reports of the one server."""
    row: dict[str, Any] = next(row for row in node.node.samples()["rows"] if row["kind"] == "server")
    return row


def test_a_name_that_leads_where_no_server_may_be_never_gets_a_request_and_says_why() -> None:
    with env() as (names, node, good, bad):
        names.addresses[NAME] = [BAD]
        node.push(compiled(node, good), 1)
        reason = f"{NAME} leads to {BAD} (balancer), where no server of this fleet may be"
        wait_until(lambda: status_of(node)["check"] == reason, "the agent says why")
        assert (node.get()[0], status_of(node)["status"], bad.asked) == (503, "MAINT (resolution)", 0)
        names.addresses[NAME] = [GOOD, BAD]
        wait_until(lambda: node.get()[0] == 200, "it leads to a server")
        names.addresses[NAME] = [BAD]  # a name that rebinds
        wait_until(lambda: node.node.resolver.why_unresolved(NAME) == reason, "the name was asked for again")
        assert (node.get()[0], bad.asked) == (200, 0)


def test_without_looking_at_addresses_a_name_leads_anywhere() -> None:
    with env(names=lambda _address, _refused: "") as (names, node, good, bad):
        names.addresses[NAME] = [BAD]
        node.push(compiled(node, good), 1)
        wait_until(lambda: node.get()[0] == 200, "it leads somewhere")
        assert bad.asked > 0


def test_an_alias_leads_no_further_than_a_name() -> None:
    with env() as (names, node, good, bad):
        names.aliases[NAME], names.addresses["elsewhere.example"] = "elsewhere.example", [BAD]
        node.push(compiled(node, good), 1)
        wait_until(lambda: BAD in node.node.resolver.why_unresolved(NAME), "the alias was followed")
        names.addresses["elsewhere.example"] = [GOOD]
        wait_until(lambda: node.get()[0] == 200, "it leads to a server")
        assert bad.asked == 0


def _after_a_reload_in_silence(own: tuple[str, ...] = NOT_THERE, **taken_away: Any) -> int:
    """The status of a request after a reload in which no name server answers."""
    with env(**taken_away) as (names, node, good, _bad):
        names.addresses[NAME] = [GOOD]
        node.push(compiled(node, good), 1)
        wait_until(lambda: node.get()[0] == 200, "it leads to a server")
        names.silent = True
        node.push(compiled(node, good, more=1, own=own), 2)
        return node.get()[0]


def test_a_reload_does_not_forget_where_names_lead() -> None:
    assert _after_a_reload_in_silence() == 200


def test_without_handing_it_on_a_reload_forgets_where_names_lead() -> None:
    assert _after_a_reload_in_silence(health=lambda _shown, _config, _may_stay: "1\n") == 503


def test_what_a_new_bundle_refuses_is_not_handed_on() -> None:
    assert _after_a_reload_in_silence(own=("127.0.0.0/30",)) == 503
