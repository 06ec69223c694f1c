"""PUSH, the confirmation: asks each port who answers there, instead of believing which file lies where."""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
from dataclasses import dataclass

from apps.agent.bodies import Bind


@dataclass(frozen=True)
class Answer:
    """`foreign` is True when another program answered; `problem` says what was wrong, empty when all is well."""

    foreign: bool = False
    generation: str = ""
    digest: str = ""
    problem: str = ""


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


CONTEXT = _context()


def probe(bind: Bind, address: str, port: int, secret: str, timeout: float = 1.0) -> Answer:
    """Ask one listener: http and https by the probe path, tcp by a connection."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)  # noqa: S104 — the wildcard is asked on loopback
    try:
        if bind.protocol == "tcp":
            socket.create_connection((host, port), timeout).close()
            return Answer()
        return _http(bind.protocol, host, port, secret, timeout)
    except (OSError, http.client.HTTPException) as error:
        return Answer(problem=f"nobody answers as expected ({error})")


def _http(protocol: str, host: str, port: int, secret: str, timeout: float) -> Answer:
    raw = socket.create_connection((host, port), timeout)
    with raw:
        # strict-sni refuses a hello without a known name, and which names are known is the bundle's business;
        # so an https listener that does not take ours is confirmed by the worker's socket and an answering TLS stack.
        stream: socket.socket = raw
        if protocol == "https":
            try:
                stream = CONTEXT.wrap_socket(raw, server_hostname="spillway-probe.invalid")
            except ssl.SSLError as error:
                return Answer(problem="" if "ALERT" in str(error.reason or "") else f"no TLS here ({error})")
        stream.sendall(f"GET /{secret} HTTP/1.1\r\nhost: spillway-probe\r\nconnection: close\r\n\r\n".encode())
        response = http.client.HTTPResponse(stream)
        response.begin()
        generation = response.getheader("x-spillway-generation")
        digest = response.getheader("x-spillway-digest") or ""
        if response.status != 200 or generation is None:
            return Answer(True, problem=f"another program answers (status {response.status})")
        return Answer(False, generation, digest)


def taken(address: str, port: int) -> str | None:
    """Why a port that we do not hold yet cannot be bound, as the end of a sentence; None when it can."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((address, port))
            trial.listen(1)
        except OSError as error:
            return {
                errno.EADDRINUSE: "is in use by another program",
                errno.EADDRNOTAVAIL: "has an address that this machine does not have",
                errno.EACCES: "needs rights that this agent does not have",
            }.get(error.errno or 0, f"cannot be bound ({error.strerror})")
    return None


def spare_port() -> int:
    """A loopback port that is free now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
        return port
