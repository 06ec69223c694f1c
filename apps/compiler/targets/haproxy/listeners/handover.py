"""A tcp listener that ends TLS for some names and passes it on for others: two frontends behind one port.

The outer one has the port and reads the name in the first bytes. It sends connections of the names that are passed on
to their pools, and hands all others over to the inner one, which ends TLS. The PROXY protocol tells that one who the
client is. So limits and lists of clients are asked outside, and every connection has one line in the request log: of
those that are handed over the inner one writes it.

Between them is a socket of Linux's abstract namespace, since a process that is locked into an empty directory reaches
no file. Its name has the directory of this HAProxy in it, so that another one on the machine, such as a trial run, has
its own. Whoever runs programs on the node could connect there as well, and claim to be any client.
"""

from __future__ import annotations

from dataclasses import replace

from apps.compiler.model.shared import Listener
from apps.compiler.targets.haproxy.settings import TCP
from apps.compiler.targets.haproxy.writer import Document, Expanded, Section

# The inner frontend has the times of the listener and of the pools; the way to it outlives them all.
LONGEST = "24d"


def hands_over(listener: Listener) -> bool:
    """Whether it does both."""
    return listener.ends_tls and any(each.passthrough for each in listener.sni_routes)


def inner_name(listener: Listener) -> str:
    """Of the inner frontend."""
    return f"{listener.id}-tls"


def way_name(listener: Listener) -> str:
    """Of the backend that leads to it: HAProxy 3.2 warns of a name that both have, and 3.3 refuses it."""
    return f"to-{inner_name(listener)}"


def outer(listener: Listener) -> Listener:
    """What clients connect to; an exact name that is ended wins over a wildcard that is passed on.

    What clients send first is asked inside, where TLS is ended.
    """
    door = way_name(listener)
    routes = tuple(each if each.passthrough else replace(each, pool_id=door) for each in listener.sni_routes)
    return replace(listener, ends_tls=False, sni_routes=routes, protocol_routes=(), default_pool_id=door)


def inner(listener: Listener) -> Listener:
    """What ends TLS."""
    return replace(listener, sni_routes=tuple(each for each in listener.sni_routes if not each.passthrough))


def add_silence(section: Section, listener: Listener) -> None:
    """No line of an outer frontend for what the inner one logs."""
    door = way_name(listener)
    if listener.default_pool_id == door:
        handed_over = ("if", "{", "var(txn.action)", "-m", "str", door, "}")
        section.add("tcp-request", "content", "set-log-level", "silent", *handed_over)


def add_way(document: Document, listener: Listener) -> None:
    """The backend that leads from the outer frontend to the inner one."""
    section = document.section("backend", way_name(listener), "from", TCP, owner=listener.id)
    section.add("timeout", "server", LONGEST)
    section.add("timeout", "tunnel", LONGEST)
    section.add("server", "inner", socket_of(listener), "send-proxy-v2")


def socket_of(listener: Listener) -> Expanded:
    """Where the inner frontend listens."""
    return Expanded(f"abns@${{SPILLWAY_RUN}}/{inner_name(listener)}")
