"""Connections to ports of tcp, each begun in another way: which stub server answers on either side."""

from __future__ import annotations

import re
import socket
import ssl
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from apps.compiler.matching.hosts import example_of
from apps.importing.replay.contract import Answer, Opening
from apps.importing.replay.stubs import MARK

# For a server of which the old file may wait for the first bytes.
ANSWER_S = 12.0
# Not the node itself, whom no list of a listener closes out.
CLIENT = ("127.0.0.2", 0)
UNKNOWN = "somebody.example.invalid"
MOST_NAMES = 24
# Of ports that are alike, such as those of a range, some are asked in every way, and the others in one.
MOST_ALIKE = 4
HTTP, SSH = b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n", b"SSH-2.0-replay\r\n"
UPGRADE = HTTP[:-2] + b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: cmVwbGF5\r\n\r\n"
SOCKS, RDP, OTHER = b"\x05\x01\x00", b"\x03\x00\x00\x0b\x06\xe0\x00\x00\x00\x00\x00", bytes(range(1, 33))
_NAME = re.compile(r"\.?(?:[a-z0-9-]+\.)+[a-z]{2,}")
_MARKED = re.compile(rf"{MARK}: (\S+)".encode(), re.IGNORECASE)


def openings(
    words: list[str], listeners: Mapping[int, Mapping[str, Any]], encrypted: Mapping[int, bool]
) -> list[Opening]:
    """How connections begin, for each port of tcp; `words` are those of the old file that may be names.

    Only ports that tell protocols apart are asked with silence: each takes as long as both sides wait.
    """
    alike: Counter[str] = Counter()
    found: list[Opening] = []
    for port, spec in listeners.items():
        kind = repr({name: said for name, said in spec.items() if name not in ("name", "port")})
        alike[kind] += 1
        ways = _of_port(port, words, spec, ends=encrypted[port])
        found += ways if alike[kind] <= MOST_ALIKE else islice(ways, 1)
    return found


def _of_port(port: int, words: list[str], spec: Mapping[str, Any], *, ends: bool) -> Iterator[Opening]:
    own = [example_of(each["hostname"]) for each in spec.get("sni_routes", ())]
    said = [word.lower().lstrip(".") for word in words if _NAME.fullmatch(word.lower())]
    names = list(dict.fromkeys([UNKNOWN, *own, *said, *(f"zz.{name}" for name in (*own, *said))]))[:MOST_NAMES]
    routes = spec.get("protocol_routes", ())
    for name in ("", *names):
        yield Opening(port, name, sent=OTHER if ends else b"", is_tls=True)
    for alpn in (each["alpn"] for each in routes if "alpn" in each):
        yield from (Opening(port, name, alpn, OTHER if ends else b"", is_tls=True) for name in names[:3])
    for sent in (HTTP, UPGRADE, SSH, SOCKS, RDP, OTHER, *([b""] if routes else [])):
        yield Opening(port, names[0] if ends else "", sent=sent, is_tls=ends)


def connect(opening: Opening, port: int, *, ends: bool) -> Answer:
    """Who answers; nobody where the connection is closed. `ends`: TLS ends at the port.

    Raises ConnectionRefusedError where nobody listens.
    """
    try:
        with socket.create_connection(("127.0.0.1", port), ANSWER_S, CLIENT) as plain:
            if not ends:
                return _reached(plain, _hello(opening) if opening.is_tls else opening.sent)
            with _tls(opening).wrap_socket(plain, server_hostname=opening.name or None) as client:
                return _reached(client, opening.sent)
    except ConnectionRefusedError:
        raise
    except OSError:
        return Answer(0)


def _reached(client: socket.socket, sent: bytes) -> Answer:
    if sent:
        client.sendall(sent)
    read = b""
    while more := client.recv(4096):
        read += more
        if found := _MARKED.search(read):
            return Answer(0, found[1].decode())
    return Answer(0)


def _tls(opening: Opening) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if opening.alpn:
        context.set_alpn_protocols([opening.alpn])
    return context


def _hello(opening: Opening) -> bytes:
    """The first bytes of a client that speaks TLS."""
    sent = ssl.MemoryBIO()
    client = _tls(opening).wrap_bio(ssl.MemoryBIO(), sent, server_hostname=opening.name or None)
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()
