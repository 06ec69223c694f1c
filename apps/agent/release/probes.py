"""The confirmation: asks each port who answers there, instead of believing which file lies where."""

from __future__ import annotations

import errno
import http.client
import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from apps.agent.bodies import Bind
from apps.agent.process.sockets import Ends, listening, listens
from apps.agent.release.nodecfg import Endpoint
from apps.agent.static_ips.health_watchdog import listener_identity

IP_FREEBIND = 15  # Linux; Python has no name for it


@dataclass(frozen=True)
class Answer:
    """`foreign` is True when another program answered; `problem` says what was wrong, empty when all is well.

    `silent` is True when nobody answered: who is slow may do so later.
    """

    foreign: bool = False
    generation: str = ""
    digest: str = ""
    problem: str = ""
    silent: bool = False


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


CONTEXT = _context()
NAME = re.compile(r"(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)+")


def server_name(release: Path, bind: Bind) -> str:
    """A name that an https listener has a certificate for, from its own list; empty when it has none."""
    try:
        words = (release / "certs" / f"{bind.listener_id}.list").read_text().split()
    except OSError:
        return ""
    names = [word for word in words if NAME.fullmatch(word)]
    return names[0].replace("*", "spillway-probe", 1) if names else ""


def probe(
    bind: Bind, address: str, port: int, secret: str, release: Path, timeout: float = 1.0, there: Ends | None = None
) -> Answer:
    """Ask one listener: http and https by the probe path.

    Of a tcp listener the kernel is asked, unless the caller did: `there`. A connection would go on to a server, which
    would count it as a client.
    """
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)  # noqa: S104 — the wildcard is asked on loopback
    try:
        if bind.protocol == "tcp":
            there = listening() if there is None else there
            return Answer() if listens(address, port, there) else Answer(problem="nothing listens", silent=True)
        name = server_name(release, bind) if bind.protocol == "https" else ""
        return _http(bind.protocol, host, port, secret, name, timeout)
    except (OSError, http.client.HTTPException) as error:
        return _unanswered(error)


def _unanswered(error: Exception) -> Answer:
    hung_up = isinstance(error, (ConnectionResetError, BrokenPipeError, http.client.HTTPException))
    return Answer(problem=f"nothing answers as expected ({error})", silent=not hung_up)


def _http(protocol: str, host: str, port: int, secret: str, name: str, timeout: float) -> Answer:
    raw = socket.create_connection((host, port), timeout)
    with raw:
        # strict-sni refuses a hello without a known name; a listener without any certificate is therefore confirmed
        # by that refusal, and who runs behind it by the worker's socket.
        stream: socket.socket = raw
        if protocol == "https":
            try:
                stream = CONTEXT.wrap_socket(raw, server_hostname=name or "spillway-probe.invalid")
            except ssl.SSLError as error:
                refused = not name and any(word in (error.reason or "") for word in ("UNRECOGNIZED_NAME", "ALERT"))
                return Answer(problem="" if refused else f"no TLS here ({error})")
        stream.sendall(f"GET /{secret} HTTP/1.1\r\nhost: spillway-probe\r\nconnection: close\r\n\r\n".encode())
        response = http.client.HTTPResponse(stream)
        response.begin()
        generation = response.getheader("x-spillway-generation")
        digest = response.getheader("x-spillway-digest") or ""
        if response.status != 200 or generation is None:
            return Answer(True, problem=f"another program answers (status {response.status})")
        return Answer(False, generation, digest)


def ask_privately(path: Path, secret: str) -> Answer:
    """Ask a listener on its private socket, whoever has its address now."""
    try:
        generation, digest = listener_identity(str(path), secret)
    except OSError as error:
        return _unanswered(error)
    if not generation:
        return Answer(problem="it answers something else")
    return Answer(False, generation, digest)


def taken(endpoint: Endpoint, moves: bool = False) -> str | None:
    """Why a port that we do not hold yet cannot be bound, as the end of a sentence; None when it can.

    An address that moves need not be on this machine.
    """
    family = socket.AF_INET6 if ":" in endpoint.address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM if endpoint.udp else socket.SOCK_STREAM) as trial:
        if moves:
            trial.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        try:
            if endpoint.udp:  # with SO_REUSEADDR it could be bound twice
                trial.bind((endpoint.address, endpoint.port))
                return None
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((endpoint.address, endpoint.port))
            trial.listen(1)
        except OSError as error:
            return {
                errno.EADDRINUSE: "is in use by another program",
                errno.EADDRNOTAVAIL: "has an address that this machine does not have",
                errno.EACCES: "needs rights that this agent does not have",
            }.get(error.errno or 0, f"cannot be bound ({error.strerror})")
    return None


def spare_port() -> int:
    """A loopback port that is free now, for TCP and for UDP."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
            trial.bind(("127.0.0.1", 0))
            port: int = trial.getsockname()[1]
            if taken(Endpoint("127.0.0.1", port, udp=True)) is None:
                return port
