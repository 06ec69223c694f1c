"""An API server of Kubernetes on loopback, as far as EndpointSlices go: lists in pages, watches, versions, bookmarks.

It holds to what the API's documentation says of resource versions: a watch from a forgotten one ends with 410. What it
answers was compared with the real server by tests/conformance/test_kubernetes.py.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.issuer import serving

TOKEN = "operators-token"
Slice = dict[str, Any]


def endpoint(address: str, **fields: Any) -> dict[str, Any]:
    """One ready pod, unless its conditions say otherwise."""
    return {"addresses": [address], "conditions": {"ready": True, "serving": True, "terminating": False}} | fields


def ending(address: str, **fields: Any) -> dict[str, Any]:
    """A pod that ends and still serves."""
    return endpoint(address, conditions={"ready": False, "serving": True, "terminating": True}, **fields)


def endpoint_slice(name: str, service: str, *endpoints: dict[str, Any], **fields: Any) -> Slice:
    """A slice of a Service with one port."""
    metadata = {"name": name, "labels": {"kubernetes.io/service-name": service}, **fields.pop("metadata", {})}
    ports = [{"name": "http", "port": 8080, "protocol": "TCP"}]
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": list(endpoints), "ports": ports} | fields


@dataclass
class ApiServer:
    """What it knows; `lists` and `watches` count what it was asked, `open` the watches of now."""

    port: int = 0
    status: int = 200
    token: str = TOKEN
    slices: dict[str, Slice] = field(default_factory=dict)
    history: list[tuple[int, str, Slice]] = field(default_factory=list)
    version: int = 1
    forgotten: int = 0
    lists: int = 0
    watches: int = 0
    open: int = 0
    page: int = 500
    ends: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def put(self, each: Slice) -> None:
        """Create or replace a slice."""
        name = each["metadata"]["name"]
        with self.changed:
            self.version += 1
            each = each | {"metadata": each["metadata"] | {"resourceVersion": str(self.version)}}
            kind = "MODIFIED" if name in self.slices else "ADDED"
            self.slices[name] = each
            self.history.append((self.version, kind, each))
            self.changed.notify_all()

    def delete(self, name: str) -> None:
        """Take a slice away."""
        with self.changed:
            self.version += 1
            gone = self.slices.pop(name)
            gone = gone | {"metadata": gone["metadata"] | {"resourceVersion": str(self.version)}}
            self.history.append((self.version, "DELETED", gone))
            self.changed.notify_all()

    def compact(self) -> None:
        """Forget all versions and break every watch off: who comes back has to list again."""
        with self.changed:
            self.version += 1
            self.forgotten, self.history = self.version, []
            self.ends += 1
            self.changed.notify_all()

    def cut(self) -> None:
        """Break every watch off."""
        with self.changed:
            self.ends += 1
            self.changed.notify_all()

    def listed(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """A page."""
        self.lists += 1
        start, limit = int(query.get("continue", ["0"])[0]), min(self.page, int(query["limit"][0]))
        rows = [self.slices[name] for name in sorted(self.slices)]
        more = {"continue": str(start + limit)} if start + limit < len(rows) else {}
        return {"metadata": {"resourceVersion": str(self.version), **more}, "items": rows[start : start + limit]}

    def events(self, version: int) -> Iterator[dict[str, Any] | None]:
        """What a watch says, None where it would say nothing for a while; it ends when watches are broken off."""
        ends = self.ends
        while True:
            with self.changed:
                if version < self.forgotten:
                    yield {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
                    return
                new = [row for row in self.history if row[0] > version]
                if not new and ends == self.ends:
                    self.changed.wait(0.05)
            if ends != self.ends:
                return
            for number, kind, each in new:
                version = number
                yield {"type": kind, "object": each}
            if not new:
                yield None


def _handler(api: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            known = parts.path == "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
            allowed = self.headers["Authorization"] == f"Bearer {api.token}"
            status = api.status if known and allowed else 401 if known else 404
            if status != 200 or "watch" not in query:
                body = json.dumps(api.listed(query) if status == 200 else {"kind": "Status", "code": status}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            api.watches += 1
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            api.open += 1
            try:
                self._stream(int(query["resourceVersion"][0]))
            finally:
                api.open -= 1

        def _stream(self, version: int) -> None:
            spoken = time.monotonic()
            for each in api.events(version):
                if each is None and time.monotonic() - spoken < 0.5:
                    continue
                spoken = time.monotonic()
                mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(api.version)}}}
                line = json.dumps(each or mark).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
            """Quiet."""

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Callers that went away are nothing to report."""


@contextmanager
def api_server() -> Iterator[ApiServer]:
    """One that runs."""
    api = ApiServer()
    server = _Server(("127.0.0.1", 0), _handler(api))
    server.socket = serving()[0].wrap_socket(server.socket, server_side=True)
    api.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield api
    finally:
        api.cut()
        server.shutdown()
        server.server_close()


def clusters_file(folder: Path, api: ApiServer, **namespaces: list[str]) -> Path:
    """The operator's file with this server as cluster prod, its CA and its token beside it."""
    (folder / "ca.pem").write_bytes(serving()[1])
    (folder / "token").write_text(f"{TOKEN}\n")
    entry: dict[str, Any] = {"url": f"https://localhost:{api.port}", "ca_file": str(folder / "ca.pem")}
    entry |= {"token_file": str(folder / "token"), "namespaces": namespaces}
    written = folder / "registries.json"
    written.write_text(json.dumps({"kubernetes": {"prod": entry}}))
    return written
