"""The demo's wire: just enough HTTP/1.1 over asyncio streams for our own backends and clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

REASONS = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 500: "Internal Server Error"}
MAX_BODY = 1 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names are lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """One answer; `close` ends the connection without any answer, as a machine that went away does."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    close: bool = False

    @classmethod
    def of_json(cls, value: object, status: int = 200) -> Response:
        """Answer with `value` as JSON."""
        return cls(status, json.dumps(value).encode() + b"\n", {"content-type": "application/json"})


Answer = Callable[[Request], Awaitable[Response]]


class MalformedError(Exception):
    """What arrived is not HTTP/1.1 as we read it."""


async def read_headers(reader: asyncio.StreamReader) -> dict[str, str]:
    """Header lines up to the empty line; names lower case. Raises MalformedError."""
    headers: dict[str, str] = {}
    while (line := (await reader.readline()).rstrip(b"\r\n")) != b"":
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or len(headers) > 100:
            raise MalformedError(f"not a header line: {line[:60]!r}")
        headers[name.lower()] = value.strip()
    return headers


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection, or None when the client has closed it. Raises MalformedError."""
    line = (await reader.readline()).decode("latin-1").split()
    if not line:
        return None
    if len(line) != 3:
        raise MalformedError("not a request line")
    headers = await read_headers(reader)
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not length.isdigit() or int(length) > MAX_BODY:
        raise MalformedError("only bodies with a content-length up to 1 MiB are read")
    return Request(line[0], line[1], headers, await reader.readexactly(int(length)))


def wire(response: Response, *, keep_alive: bool) -> bytes:
    """The bytes of an answer."""
    lines = [f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    lines += [f"content-length: {len(response.body)}", f"connection: {'keep-alive' if keep_alive else 'close'}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + response.body


async def serve_connection(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer request after request of one connection until either side ends it."""
    try:
        while (request := await read_request(reader)) is not None:
            response = await answer(request)
            if response.close:
                writer.transport.abort()
                return
            keep_alive = request.headers.get("connection", "").lower() != "close"
            head_only = Response(response.status, b"", response.headers) if request.method == "HEAD" else response
            writer.write(wire(head_only, keep_alive=keep_alive))
            await writer.drain()
            if not keep_alive:
                return
    except MalformedError as error:
        writer.write(wire(Response(400, f"{error}\n".encode()), keep_alive=False))
    except (ConnectionError, asyncio.IncompleteReadError, ValueError):
        return
    finally:
        writer.close()


async def listen(answer: Answer, port: int, host: str = "127.0.0.1") -> asyncio.Server:
    """A server that answers with `answer`; port 0 lets the kernel choose."""

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled means that the program ends: nothing to say, least of all a traceback per open connection.
        with contextlib.suppress(asyncio.CancelledError):
            await serve_connection(answer, reader, writer)

    return await asyncio.start_server(on_connection, host, port, backlog=1024)
