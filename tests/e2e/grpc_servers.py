"""A gRPC server whose methods take and give plain bytes, so that no code has to be generated for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from tests.e2e.rendered_proxy import PATIENCE_S

TALKING_AT_ONCE = 24
_MESSAGE_BYTES = [("grpc.max_receive_message_length", -1)]


@dataclass(slots=True)
class Heard:
    """What the server knows of calls that their clients gave up."""

    time_remaining: list[float | None] = field(default_factory=list)
    began: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def next_call(self) -> None:
        """Hear of the next call alone: an earlier one may still be ending."""
        self.began, self.ended = threading.Event(), threading.Event()


class Methods:
    """`/test/<name>`: a method of each of the four kinds, and some that go wrong."""

    def __init__(self, heard: Heard) -> None:
        unary, to_many = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        self._heard = heard
        self._handlers: dict[str, Any] = {
            "one": unary(self.one),
            "many": to_many(self.many),
            "gather": grpc.stream_unary_rpc_method_handler(self.gather),
            "talk": grpc.stream_stream_rpc_method_handler(self.talk),
            "refuse": unary(self.refuse),
            "break": to_many(self.break_off),
            "wait": unary(self.wait),
        }

    def service(self, call: Any) -> Any:
        """The method of that name; None is answered with UNIMPLEMENTED."""
        return self._handlers.get(call.method.removeprefix("/test/"))

    def one(self, request: bytes, context: Any) -> bytes:
        """The same again, and what the client said of itself before and behind it."""
        said = tuple((key, value) for key, value in context.invocation_metadata() if key.startswith("x-said"))
        context.send_initial_metadata(said)
        context.set_trailing_metadata((*said, ("x-end", "yes")))
        return request

    def many(self, request: bytes, _: Any) -> Iterator[bytes]:
        """The same three times."""
        yield from [request] * 3

    def gather(self, requests: Iterator[bytes], _: Any) -> bytes:
        """All in one."""
        return b"".join(requests)

    def talk(self, requests: Iterator[bytes], _: Any) -> Iterator[bytes]:
        """Each again as it comes."""
        yield from requests

    def refuse(self, request: bytes, context: Any) -> bytes:
        """`5 reason`: that status and nothing before it."""
        number, _, details = request.decode().partition(" ")
        context.set_trailing_metadata((("x-end", "refused"),))
        context.abort(next(code for code in grpc.StatusCode if code.value[0] == int(number)), details)
        raise AssertionError

    def break_off(self, request: bytes, context: Any) -> Iterator[bytes]:
        """One message, then that status."""
        yield b"first"
        self.refuse(request, context)

    def wait(self, request: bytes, context: Any) -> bytes:
        """Say that it began, and wait until the client does not want to know any more."""
        ended = self._heard.ended
        self._heard.time_remaining.append(context.time_remaining())
        context.add_callback(ended.set)
        self._heard.began.set()
        ended.wait(PATIENCE_S)
        return request


def health(answer: Callable[[], int], asked: list[tuple[str, bytes]]) -> Any:
    """gRPC's health protocol: the number of the answer, 1 for SERVING."""

    class Health:
        """Answers whatever is asked."""

        def service(self, call: Any) -> Any:
            """The one method that there is."""

            def check(request: bytes, _: Any) -> bytes:
                asked.append((call.method, request))
                return bytes((8, answer()))

            return grpc.unary_unary_rpc_method_handler(check)

    return Health()


@contextmanager
def grpc_server(methods: Any, pem: str = "") -> Iterator[int]:
    """A server on 127.0.0.1, behind TLS where it has a certificate; yields its port."""
    server = grpc.server(ThreadPoolExecutor(TALKING_AT_ONCE), options=_MESSAGE_BYTES)
    server.add_generic_rpc_handlers((methods,))
    if pem:
        shown = pem.encode()
        key = shown[shown.index(b"-----BEGIN PRIVATE") :]
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, shown)]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield int(port)
    finally:
        server.stop(None)
