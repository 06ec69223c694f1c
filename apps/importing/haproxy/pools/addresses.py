"""Addresses of servers: where each is, and where it is to be by the table that was given."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing import context as general
from apps.importing.haproxy.text.words import expanded
from apps.importing.haproxy.traffic.context import Context
from apps.importing.verdicts import Line

_PREFIX = re.compile(r"(?:ipv4|ipv6|tcp|tcp4|tcp6|quic4|quic6|udp|udp4|udp6|mptcp|stcp)[46]?@", re.IGNORECASE)
_NO_SOCKET = ("unix@", "abns@", "abnsz@", "sockpair@", "fd@", "/", "rhttp@")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and port; a port of 0 is that of the client's connection, or none."""

    address: str
    port: int


def divided(text: str) -> Endpoint | None:
    """Address and port of a text such as `10.0.0.1:80`, `[::1]:80`, `*:80`; None for a socket that is no port."""
    text = _PREFIX.sub("", text)
    if text.startswith(_NO_SOCKET):
        return None
    address, mark, port = text.rpartition(":")
    if not mark or (address.count(":") and not text.startswith("[") and not port.isdecimal()):
        address, port = text, "0"
    port = port.lstrip("+") if port not in ("", "*") else "0"
    return Endpoint(address.strip("[]"), int(port)) if port.isdecimal() and int(port) <= 65535 else None


def say_unset(context: Context, line: Line, names: list[str]) -> None:
    """Variables in an address that nobody gave."""
    for name in names:
        context.ledger.unset(line, name)


def endpoint_of(context: Context, line: Line, text: str, default_port: int = 0) -> Endpoint | None:
    """Where the server is; None where it can be none, which is said."""
    text, unknown = expanded(text, context.configuration.environment)
    say_unset(context, line, unknown)
    return None if context.ledger.has_unset(line) else server_at(context, line, text, default_port)


def server_at(context: general.Context, line: Line, text: str, default_port: int = 0) -> Endpoint | None:
    """The same for a text without variables, in whatever format it stands."""
    moved = context.options.servers.get(text, text)
    found = divided(moved)
    if found is None:
        why = f"A server has an address and a port; say where {text} is with --map-servers {text}=HOST:PORT."
        context.ledger.differs(line, why)
        context.need(f"Where the server {text} is (--map-servers {text}=HOST:PORT).")
        return None
    if re.search(r":[+-][0-9]+\Z", moved):
        context.ledger.differs(line, "A server has one port, and none that counts from that of the client.")
    if not found.port:
        context.ledger.differs(line, f"The server named no port; it has {default_port}, that of the listener.")
    return _allowed(context, line, text, Endpoint(found.address.lower(), found.port or default_port))


def _allowed(context: general.Context, line: Line, text: str, found: Endpoint) -> Endpoint | None:
    address = _canonical(found.address)
    try:
        grammar.server_address(address, local_development=context.options.local_development)
    except GrammarError as error:
        why = f"{error.message} Say where the server is with --map-servers {text}=HOST:PORT."
        context.ledger.differs(line, why)
        context.need(f"Where the server {text} is (--map-servers {text}=HOST:PORT).")
        if error.code != "address_refused":
            return None
    return Endpoint(address, found.port)


def _canonical(address: str) -> str:
    """An address in one spelling; who connects to 0.0.0.0 reaches the machine itself."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.is_unspecified:
        return "127.0.0.1" if found.version == 4 else "::1"
    return str(found)
