"""Connects to a registry at the first of its URLs that answers, and ends what waits there."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from urllib.parse import urlsplit

from apps.definitions.server_sources.watched import Failed

TIMEOUT_S = 5.0


def connected(urls: tuple[str, ...], ca_file: str, of: str) -> http.client.HTTPConnection:
    """A connection to the first that takes one; `of` is the registry in sentences. Raises Failed."""
    said = Failed(f"The operator's entry of {of} has no URL.")
    for url in urls:
        try:
            connection = _connection(url, ca_file)
        except (OSError, ValueError, http.client.HTTPException):
            raise Failed(f"The operator's entry of {of} cannot be used: a URL or its CA cannot be read.") from None
        try:
            connection.connect()
        except ssl.SSLCertVerificationError:
            said = Failed(f"The certificate of {of} is not of the authority that the operator gave.")
        except OSError:
            said = Failed(f"{of} does not answer.")
        else:
            return connection
    raise said


def cut(waiting: socket.socket | None) -> None:
    """End the connection, whatever waits for it, without a farewell of TLS."""
    if waiting is not None:
        with contextlib.suppress(OSError):
            socket.socket.shutdown(waiting, socket.SHUT_RDWR)


def _connection(url: str, ca_file: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
    context = ssl.create_default_context(cafile=ca_file or None)
    return http.client.HTTPSConnection(parts.netloc, timeout=TIMEOUT_S, context=context)
