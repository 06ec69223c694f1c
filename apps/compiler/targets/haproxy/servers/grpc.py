"""The question of gRPC's health protocol, byte by byte, and the answer that a serving server gives.

HAProxy has no check for gRPC, and a check by HTTP would not look into the answer: a server that says NOT_SERVING
answers 200 as well. So the check sends an HTTP/2 connection's beginning with one request and looks for the message.
"""

from __future__ import annotations

PATH = "/grpc.health.v1.Health/Check"
AUTHORITY = "health"
# A message of two bytes, uncompressed: field 1 is SERVING.
SERVING = bytes((0, 0, 0, 0, 2, 8, 1))
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_END_STREAM, _END_HEADERS = 1, 4


def health_request(service: str, host: str, *, secure: bool) -> bytes:
    """A connection that asks whether a service, or with an empty name the server, is serving."""
    headers = (
        (":method", "POST"),
        (":scheme", "https" if secure else "http"),
        (":path", PATH),
        (":authority", host or AUTHORITY),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    )
    block = b"".join(b"\0" + _short(name) + _short(value) for name, value in headers)
    message = b"\x0a" + _length(len(service)) + service.encode() if service else b""
    return b"".join(
        (
            _PREFACE,
            _frame(_SETTINGS, 0, 0, b""),
            _frame(_HEADERS, _END_HEADERS, 1, block),
            _frame(_DATA, _END_STREAM, 1, b"\0" + len(message).to_bytes(4, "big") + message),
        )
    )


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _short(text: str) -> bytes:
    """A text of a header block (RFC 7541 5.2), not compressed; a length beyond seven bits goes on behind them."""
    size = len(text)
    if size < 127:
        return bytes((size,)) + text.encode()
    return bytes((127,)) + _length(size - 127) + text.encode()


def _length(number: int) -> bytes:
    """A number in groups of seven bits, the lowest first, as header blocks and messages have it."""
    groups = []
    while number > 127:
        groups.append(number % 128 + 128)
        number //= 128
    return bytes((*groups, number))
