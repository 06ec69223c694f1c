"""Reads, watches and writes keys of etcd (3.4 or newer), by the JSON that its gateway speaks.

A read names the revision that it is of; a watch tells what changed from a revision on. A revision that was compacted is
Gone: whoever asks reads again. A write is a transaction, which does nothing unless each key that it names is as read.
The documentation of the gateway: https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.definitions.server_sources.connecting import TIMEOUT_S, connected, cut
from apps.definitions.server_sources.watched import MOST_BYTES, Failed, Gone, read_object

# Silence for so long ends a watch, after which everything is read anew: a dead connection is found by that.
SILENCE_S = 60.0
MOST_KEYS = 5000
# So many keys in one answer, where all of them may be large.
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Etcd:
    """How to reach a cluster: any of the URLs answers; the password is read anew for each call."""

    urls: tuple[str, ...]
    ca_file: str = ""
    user: str = ""
    password_file: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """What a watch says: a key has a value, or None where it was deleted."""

    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Kept:
    """A key as etcd has it; `revision` is that of its last change (`mod_revision`)."""

    value: str
    revision: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """What is written at once, if every key of `as_read` was last changed at its revision (0: is not there)."""

    as_read: Mapping[str, int]
    puts: Mapping[str, str]
    deletes: Collection[str] = ()


def read_keys(etcd: Etcd, prefix: str) -> tuple[dict[str, str], int]:
    """Every key under the prefix with its value, and the revision that this is of. Raises Failed."""
    said = _called(etcd, "/v3/kv/range", _range(prefix) | {"limit": str(MOST_KEYS + 1)})
    rows = said.get("kvs") or []
    if len(rows) > MOST_KEYS:
        raise Failed(f"There are more than {MOST_KEYS} keys under the prefix.")
    return {_text(row, "key"): _text(row, "value") for row in rows}, _revision(said)


def read_kept(etcd: Etcd, prefix: str, most: int) -> dict[str, Kept]:
    """Every key under the prefix as of one revision, some at a time. Raises Failed, also where there are more."""
    found: dict[str, Kept] = {}
    body = _range(prefix) | {"limit": str(AT_ONCE)}
    while True:
        said = _called(etcd, "/v3/kv/range", body)
        rows = said.get("kvs") or []
        found |= {_text(row, "key"): Kept(_text(row, "value"), int(row.get("mod_revision", 0))) for row in rows}
        if len(found) > most:
            raise Failed(f"There are more than {most} keys under the prefix.")
        if not rows or not said.get("more"):
            return found
        after = base64.b64encode(base64.b64decode(rows[-1]["key"]) + b"\0").decode()
        body |= {"key": after, "revision": body.get("revision", str(_revision(said)))}


def commit(etcd: Etcd, wanted: Transaction) -> int | None:
    """Write it: the revision of etcd after it; None where a key was not as read, and nothing was written.

    Raises Failed, after which it is not known whether it was written: read again.
    """
    compare = [
        {"key": _base64(key), "target": "MOD", "result": "EQUAL", "mod_revision": str(revision)}
        for key, revision in wanted.as_read.items()
    ]
    writes: list[dict[str, Any]] = [
        {"request_put": {"key": _base64(key), "value": _base64(value)}} for key, value in wanted.puts.items()
    ]
    writes += [{"request_delete_range": {"key": _base64(key)}} for key in wanted.deletes]
    said = _called(etcd, "/v3/kv/txn", {"compare": compare, "success": writes})
    return _revision(said) if said.get("succeeded") else None


def _called(etcd: Etcd, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    with _asked(etcd, path, body, TIMEOUT_S) as (_, response):
        return read_object(response.read(MOST_BYTES + 1), "etcd")


class Watch:
    """A watch from a revision on: iterate it for changes until etcd ends it or is silent; `cut` ends it at once."""

    def __init__(self, etcd: Etcd, prefix: str, revision: int) -> None:
        self._where, self._revision = (etcd, prefix), revision
        self._socket: socket.socket | None = None

    def __iter__(self) -> Iterator[Change]:
        """Raises Failed, and Gone at the beginning or in between."""
        etcd, prefix = self._where
        body = {"create_request": _range(prefix) | {"start_revision": str(self._revision)}}
        with _asked(etcd, "/v3/watch", body, SILENCE_S) as (followed, response):
            self._socket = followed
            while line := _line(response):
                said = read_object(line, "etcd").get("result")
                if not isinstance(said, dict):
                    raise Failed("etcd ended the watch with an error.")
                if said.get("canceled"):
                    raise Gone if said.get("compact_revision") else Failed("etcd refuses the watch.")
                for event in said.get("events") or ():
                    row = event.get("kv") or {}
                    value = None if event.get("type") == "DELETE" else _text(row, "value")
                    yield Change(_text(row, "key"), value)

    def cut(self) -> None:
        """End the connection, whatever waits for it."""
        cut(self._socket)


def _line(response: http.client.HTTPResponse) -> bytes:
    """The next message; nothing where etcd was silent for long."""
    try:
        return response.readline(MOST_BYTES)
    except TimeoutError:
        return b""


@contextlib.contextmanager
def _asked(
    etcd: Etcd, path: str, body: Mapping[str, Any], timeout: float
) -> Iterator[tuple[socket.socket, http.client.HTTPResponse]]:
    """The connection and the response of status 200 of the first that answers, before its body is read."""
    connection = connected(etcd.urls, etcd.ca_file, "etcd")
    try:
        headers = {"Content-Type": "application/json", "User-Agent": "Spillway"}
        if etcd.user:
            headers["Authorization"] = _token(connection, etcd)
        connection.sock.settimeout(timeout)
        # The response takes the socket along where etcd closes: keep it, so that it can be cut.
        followed = connection.sock
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        if response.status != 200:
            raise _refusal(response.status)
        yield followed, response
    except (OSError, ValueError, http.client.HTTPException):
        raise Failed("etcd does not answer.") from None
    finally:
        connection.close()


def _token(connection: http.client.HTTPConnection, etcd: Etcd) -> str:
    """What stands for the user and the password of the operator's entry."""
    try:
        password = Path(etcd.password_file).read_text().strip()
    except (OSError, ValueError):
        raise Failed("The operator's entry of the etcd cannot be used: its password cannot be read.") from None
    connection.request("POST", "/v3/auth/authenticate", json.dumps({"name": etcd.user, "password": password}))
    response = connection.getresponse()
    body = response.read(MOST_BYTES)
    if response.status != 200:
        raise _refusal(401)
    return str(read_object(body, "etcd").get("token", ""))


def _refusal(status: int) -> Failed:
    if status in (401, 403):
        return Failed("etcd refuses us: the operator's user may not use these keys.")
    return Failed(f"etcd answers with {status}.")


def _range(prefix: str) -> dict[str, str]:
    """Every key that begins so: up to the first that does not, where a slash is followed by a zero."""
    return {"key": _base64(prefix), "range_end": _base64(prefix[:-1] + chr(ord(prefix[-1]) + 1))}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _text(row: Mapping[str, Any], field: str) -> str:
    return base64.b64decode(str(row.get(field, ""))).decode(errors="replace")


def _revision(said: Mapping[str, Any]) -> int:
    return int((said.get("header") or {}).get("revision", 0))
