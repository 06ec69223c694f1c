"""Call an address that somebody else chose, and never a private one: resolve once, check, connect to that.

Webhooks, hostname verification and forwarded request lines speak over this and over nothing else. The name is
resolved once and the connection goes to the very address that was checked, so a name cannot turn into another machine
in between; TLS still proves the name. Redirects are answers like others, proxies of the environment are not asked, and
everything ends at one deadline.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from django.conf import settings

from apps.compiler.address_spelling import spelled
from apps.compiler.addresses import Address, refusal_of_target
from apps.core.called_urls import DEFAULT_PORTS, Refused, Target, address_of, read_url

# What names of this machine mean, whatever its resolver says.
_OWN_NAMES = {name: ipaddress.IPv4Address("127.0.0.1") for name in ("localhost", "localdomain", "ip6-localhost")}


class Unreachable(Exception):
    """The other side gave no answer that counts: no address, no connection, no TLS, no HTTP, or too late."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: header names in lower case, at most `limit` bytes of the body, and from which address."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    milliseconds: int
    address: str


def check_target(target: Target) -> None:
    """Raise Refused for an address literal, or a name known as local, that we would not call; resolves nothing."""
    address = address_of(target.host) or _OWN_NAMES.get(target.host.rpartition(".")[2])
    reason = refusal_of_target(address, allowed=_allowed()) if address else None
    if reason:
        raise Refused(f"Choose another address; {target.host} {reason}.")


def fetch(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout: float = 10.0,
    limit: int = 64 * 1024,
    schemes: Collection[str] = ("https",),
    context: ssl.SSLContext | None = None,
) -> Answer:
    """One request, one answer, all within `timeout` seconds; at most `limit` bytes of the body are read.

    `context` replaces the machine's trusted certificates. Raises Refused for a URL or an address that we do not call,
    Unreachable when no answer came.
    """
    target, began = read_url(url, schemes=schemes), time.monotonic()
    addresses = _checked_addresses(target, timeout)
    left = began + timeout - time.monotonic()
    connection = _Pinned(target, addresses, (context or _trusted()) if target.scheme == "https" else None, left)
    # Closing the socket ends whatever waits for it: a peer that drips a byte a second cannot hold us.
    alarm = threading.Timer(max(left, 0.0), connection.cut)
    alarm.daemon = True
    alarm.start()
    try:
        connection.request(method, target.path, body=body, headers={"User-Agent": "Spillway", **(headers or {})})
        response = connection.getresponse()
        if time.monotonic() >= began + timeout:  # headers that were cut off read like headers that end
            raise TimeoutError
        content = _beginning(response, limit)
        names = {name.lower(): value for name, value in response.getheaders()}
        spent = round((time.monotonic() - began) * 1000)
        return Answer(response.status, names, content, spent, connection.address)
    except (OSError, http.client.HTTPException, ValueError) as error:
        late = time.monotonic() >= began + timeout - 0.05
        raise Unreachable(f"No answer within {timeout:g} s." if late else _sentence(error)) from error
    finally:
        alarm.cancel()
        connection.close()


@contextmanager
def tls_stream(
    url: str, *, timeout: float, schemes: Collection[str], context: ssl.SSLContext | None = None
) -> Iterator[ssl.SSLSocket]:
    """A TLS connection to what the URL names, for `timeout` seconds in all; it is closed in the end.

    Raises Refused for a URL or an address that we do not call, Unreachable for whatever goes wrong with the connection.
    """
    target, began = read_url(url, schemes=schemes), time.monotonic()
    addresses = _checked_addresses(target, timeout)
    left = began + timeout - time.monotonic()
    connection = _Pinned(target, addresses, context or _trusted(), left)
    alarm = threading.Timer(max(left, 0.0), connection.cut)
    alarm.daemon = True
    alarm.start()
    try:
        connection.connect()
        yield cast("ssl.SSLSocket", connection.sock)
    except (OSError, ValueError) as error:
        late = time.monotonic() >= began + timeout - 0.05
        raise Unreachable(f"No answer within {timeout:g} s." if late else _sentence(error)) from error
    finally:
        alarm.cancel()
        connection.close()


class _Pinned(http.client.HTTPConnection):
    """A connection to addresses that were checked; the name is only said in Host, in SNI and to the certificate."""

    def __init__(self, target: Target, addresses: list[str], context: ssl.SSLContext | None, left: float) -> None:
        super().__init__(target.host, target.port)
        self.default_port = DEFAULT_PORTS[target.scheme]
        self.address = ""
        self._addresses, self._context, self._deadline = addresses, context, time.monotonic() + left

    def connect(self) -> None:
        """Connect to the first address that answers, and speak TLS with the name where the URL says https."""
        failure: OSError = TimeoutError("no address answers")
        for address in self._addresses:
            left = self._deadline - time.monotonic()
            if left <= 0:
                break
            try:
                raw = socket.create_connection((address, self.port), timeout=left)
            except OSError as error:
                failure = error
                continue
            self.address, self.sock = address, raw
            if self._context is not None:
                # The handshake comes after the assignment, so that cut() reaches the socket during it as well.
                secured = self._context.wrap_socket(raw, server_hostname=self.host, do_handshake_on_connect=False)
                self.sock = secured
                secured.do_handshake()
            return
        raise failure

    def cut(self) -> None:
        """End the connection from another thread, whatever it is doing."""
        sock: socket.socket | None = self.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not SSLSocket's, which changes it under its reader


def _checked_addresses(target: Target, timeout: float) -> list[str]:
    """The addresses of the name that we may call, in the resolver's order; raises Refused when there is none."""
    found = _resolve(target.host, target.port, timeout)
    reasons = [(address, refusal_of_target(address, allowed=_allowed())) for address in found]
    may = [spelled(address) for address, reason in reasons if reason is None]
    if not may:
        address, reason = reasons[0]
        named = target.host if spelled(address) == target.host else f"{target.host} is {spelled(address)}, which"
        raise Refused(f"We do not call this address: {named} {reason}.")
    return may


def _resolve(host: str, port: int, timeout: float) -> list[Address]:
    """Every address of a name, once each; the machine's resolver knows no time limit, so a thread waits for it."""
    found: queue.SimpleQueue[list[Address] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.put([ipaddress.ip_address(row[4][0]) for row in rows])
        except (OSError, UnicodeError) as error:
            found.put(error if isinstance(error, OSError) else OSError("not a host name"))

    literal = address_of(host)
    if literal is not None:
        return [literal]
    threading.Thread(target=ask, daemon=True, name="resolve").start()
    try:
        answer = found.get(timeout=timeout)
    except queue.Empty:
        raise Unreachable(f"The name {host} was not resolved within {timeout:g} s.") from None
    if isinstance(answer, OSError) or not answer:
        raise Unreachable(f"The name {host} has no address.") from None
    return list(dict.fromkeys(answer))


def _allowed() -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    return [ipaddress.ip_network(network) for network in settings.OUTBOUND_NETWORKS]


@functools.cache
def _trusted() -> ssl.SSLContext:
    """The certificates that this machine trusts; reading them takes tens of milliseconds."""
    return ssl.create_default_context()


def _beginning(response: http.client.HTTPResponse, limit: int) -> bytes:
    """The first bytes of the body; the status has come, so a body that breaks off is only shorter."""
    try:
        return response.read(limit)
    except http.client.IncompleteRead as error:
        return error.partial[:limit]
    except (OSError, ValueError):
        return b""


def _sentence(error: Exception) -> str:
    """What went wrong, for the person who gave the URL; nothing of the other side's text is repeated."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"The certificate is not accepted: {error.verify_message}."
    if isinstance(error, ssl.SSLError):
        return "There was no TLS connection."
    if isinstance(error, ConnectionRefusedError):
        return "The connection was refused."
    if isinstance(error, ConnectionError):
        return "The connection was broken off."
    if isinstance(error, OSError):
        return "There was no connection."
    return "The answer is not HTTP."
