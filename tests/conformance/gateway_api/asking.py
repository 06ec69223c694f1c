"""Sends the requests of the cases and compares what comes back with what must."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import ssl
import struct
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography import x509

from tests.conformance.gateway_api.cases import Ask

PATIENCE_S = 30.0
# Of so many requests a share is off by a tenth in one run of a hundred thousand.
MANY = 400
NEAR = 0.1
IGNORED = ssl.create_default_context()
IGNORED.check_hostname = False
IGNORED.verify_mode = ssl.CERT_NONE


@dataclass(frozen=True, slots=True)
class Found:
    """What a client got: of gRPC the code is the status; `echo` is empty where no server answered."""

    status: int
    headers: Mapping[str, str]
    echo: Mapping[str, Any]


class Client:
    """One connection to a listener."""

    def __init__(self, port: int, tls: str = "") -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        if tls:
            plain = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
            self._connection.sock = IGNORED.wrap_socket(plain, server_hostname=tls)

    def names_shown(self) -> list[str]:
        """Those of the certificate that the handshake presented."""
        assert isinstance(self._connection.sock, ssl.SSLSocket)
        shown = x509.load_der_x509_certificate(self._connection.sock.getpeercert(binary_form=True) or b"")
        names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return names.get_values_for_type(x509.DNSName)

    def send(self, ask: Ask) -> Found:
        """One request."""
        # Servers count requests of the same id.
        path = ask.path.replace("{id}", uuid.uuid4().hex)
        self._connection.request(ask.method, path, headers={"Host": ask.host, **ask.headers})
        response = self._connection.getresponse()
        headers: dict[str, str] = {}
        for name, value in response.getheaders():
            headers[name.lower()] = f"{headers[name.lower()]},{value}" if name.lower() in headers else value
        body = response.read()
        return Found(response.status, headers, json.loads(body) if body.startswith(b"{") else {})

    def close(self) -> None:
        """Close it."""
        self._connection.close()


def check(ask: Ask, port: int) -> None:
    """Everything that one line of a case says."""
    if ask.websocket:
        return check_websocket(ask, port)
    if ask.grpc:
        return check_grpc(ask, port)
    if ask.tls and ask.status == 0:
        with pytest.raises(OSError):  # noqa: PT011  # closed, reset, or no TLS at all
            Client(port, ask.tls).close()
        return None
    client = Client(port, ask.tls)
    try:
        if ask.shown:
            assert ask.shown in client.names_shown()
        if ask.shares:
            check_shares(ask, Counter(str(client.send(ask).echo["backend"]) for _ in range(MANY)))
        for _ in range(0 if ask.shares else ask.times):
            compare(ask, client.send(ask))
    finally:
        client.close()
    return None


def compare(ask: Ask, found: Found) -> None:
    """One answer."""
    wanted = ask.status or (302 if ask.location else 200)
    assert found.status in (wanted if isinstance(wanted, tuple) else (wanted,)), found
    if ask.to:
        assert found.echo.get("backend") == ask.to
    if ask.location:
        assert found.headers.get("location") == ask.location
    for name, value in ask.answer.get("headers", {}).items():
        said = found.headers.get(name.lower(), "").replace(" ", "")
        assert said in ([each.replace(" ", "") for each in value] if isinstance(value, list) else [value]), name
    assert not found.headers.keys() & {name.lower() for name in ask.answer.get("absent", ())}
    compare_echo(ask, found.echo)


def compare_echo(ask: Ask, echo: Mapping[str, Any]) -> None:
    """What the server got."""
    if ask.marks:
        assert echo["headers"].get(ask.marks) == echo["backend"]
    if not ask.got:
        return
    for name in ("path", "sni"):
        if name in ask.got:
            assert echo[name] == ask.got[name]
    headers = echo["headers"]
    if "host" in ask.got:
        assert headers["host"] == ask.got["host"]
    for name, value in ask.got.get("headers", {}).items():
        assert headers.get(name.lower()) == value, name
    assert not headers.keys() & {name.lower() for name in ask.got.get("absent", ())}


def check_shares(ask: Ask, counted: Mapping[str, int]) -> None:
    """Of many requests each backend got its share."""
    total = sum(counted.values())
    assert counted.keys() <= ask.shares.keys()
    for name, share in ask.shares.items():
        assert abs(counted.get(name, 0) / total - share) <= (NEAR if share else 0), counted


def check_grpc(ask: Ask, port: int) -> None:
    """A call of gRPC in HTTP/2 without TLS, whose client knows that the listener speaks it."""
    grpc = pytest.importorskip("grpc")
    options = (("grpc.default_authority", ask.host), ("grpc.enable_http_proxy", 0))
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        call = channel.unary_unary(f"/echo.Echo/{ask.grpc}")
        metadata = tuple((name.lower(), value) for name, value in ask.headers.items())

        def send() -> Found:
            try:
                answer = call(b"", metadata=metadata, timeout=PATIENCE_S, wait_for_ready=False)
            except grpc.RpcError as error:
                return Found(error.code().value[0], {}, {})
            return Found(0, {}, json.loads(answer))

        if ask.shares:
            return check_shares(ask, Counter(str(send().echo["backend"]) for _ in range(MANY)))
        found = send()
        wanted = ask.status or 0
        assert found.status in (wanted if isinstance(wanted, tuple) else (wanted,)), found
        if ask.to:
            assert found.echo.get("backend") == ask.to
        compare_echo(ask, found.echo)
    return None


def check_websocket(ask: Ask, port: int) -> None:
    """Frames of text and of bytes come back."""
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (
        f"GET {ask.path} HTTP/1.1",
        f"Host: {ask.host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {key}",
    )
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall("\r\n".join((*lines, "", "")).encode())
        stream = connection.makefile("rb")
        assert b" 101 " in stream.readline()
        while stream.readline().strip():
            pass
        for kind, data in ((0x81, b"a text of several words"), (0x82, bytes(range(7)))):
            mask = os.urandom(4)
            hidden = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
            connection.sendall(struct.pack("!BB", kind, 0x80 | len(data)) + mask + hidden)
            assert stream.read(2 + len(data)) == struct.pack("!BB", kind, len(data)) + data
