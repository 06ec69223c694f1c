"""Asks Consul for the instances of a service and their health, and waits there for what changes.

An answer names its index; asked again with it, Consul answers when something changed, or after a while:
https://developer.hashicorp.com/consul/api-docs/features/blocking
"""

from __future__ import annotations

import http.client
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from apps.definitions.server_sources.connecting import connected, cut
from apps.definitions.server_sources.watched import MOST_BYTES, Failed, read_json

WAIT_S = 60
# Consul waits up to a sixteenth longer, so that not everybody asks again at once.
PATIENCE_S = WAIT_S * 17 / 16 + 10


@dataclass(frozen=True, slots=True)
class Consul:
    """How to reach it: any of the URLs answers; the token is read anew for each question."""

    urls: tuple[str, ...]
    ca_file: str = ""
    token_file: str = ""
    datacenter: str = ""


class Health:
    """Questions about one service; `cut` ends the one that waits."""

    def __init__(self, consul: Consul, service: str) -> None:
        self._consul, self._service = consul, service
        self._waiting: socket.socket | None = None

    def ask(self, index: int) -> tuple[list[Any], int]:
        """Every instance, and the index of this answer; zero asks at once, an older index until it is newer.

        Raises Failed.
        """
        query = {"index": str(index), "wait": f"{WAIT_S}s"}
        query |= {"dc": self._consul.datacenter} if self._consul.datacenter else {}
        path = f"/v1/health/service/{quote(self._service, safe='')}?{urlencode(query)}"
        headers = {"Accept": "application/json", "User-Agent": "Spillway", **self._token()}
        connection = connected(self._consul.urls, self._consul.ca_file, "Consul")
        try:
            connection.sock.settimeout(PATIENCE_S)
            self._waiting = connection.sock
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            body = response.read(MOST_BYTES + 1)
        except (OSError, ValueError, http.client.HTTPException):
            raise Failed("Consul does not answer.") from None
        finally:
            connection.close()
        if response.status != 200:
            raise _refusal(response.status)
        return _instances(body), _newer(index, response.getheader("X-Consul-Index", ""))

    def cut(self) -> None:
        """End the connection."""
        cut(self._waiting)

    def _token(self) -> dict[str, str]:
        if not self._consul.token_file:
            return {}
        try:
            return {"X-Consul-Token": Path(self._consul.token_file).read_text().strip()}
        except (OSError, ValueError):
            raise Failed("The operator's entry of Consul cannot be used: its token cannot be read.") from None


def _instances(body: bytes) -> list[Any]:
    found = read_json(body, "Consul")
    if not isinstance(found, list):
        raise Failed("The answer of Consul is no list of instances.")
    return found


def _newer(before: int, text: str) -> int:
    """The index to ask with; an index that went back belongs to another history, which begins with zero."""
    found = int(text) if text.isascii() and text.isdecimal() else 0
    return found if found >= before else 0


def _refusal(status: int) -> Failed:
    if status in (401, 403):
        return Failed("Consul refuses us: the operator's token may not read this service and its nodes.")
    return Failed(f"Consul answers with {status}.")
