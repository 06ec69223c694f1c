"""Which servers the keys of etcd name; pure.

/services/web/web-1                        10.0.0.7:8080
/vulcand/backends/web/servers/web-2        {"URL": "http://10.0.0.8:8080"}
/services/web/web-3                        {"address": "10.0.0.9", "port": 8080, "weight": 50, "draining": true}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from apps.definitions.server_sources.deciding import HIGHEST_WEIGHT, FoundServer, harmless, short_number
from apps.definitions.server_sources.watched import Unclear


def servers_of(keys: Mapping[str, str]) -> list[FoundServer]:
    """A server for each key, called as the last step of it. Raises Unclear, which names the key."""
    return [_server(key, value.strip()) for key, value in sorted(keys.items())]


def _server(key: str, value: str) -> FoundServer:
    said: Mapping[str, Any] = {"URL": value}
    if value.startswith("{"):
        try:
            said = json.loads(value)
        except (ValueError, RecursionError):
            raise _unclear(key) from None
    address, port = _endpoint(said)
    weight, draining = said.get("weight"), said.get("draining", False)
    weighs = weight is None or (type(weight) is int and 0 <= weight <= HIGHEST_WEIGHT)
    if not address or not 0 < port <= 65535 or not weighs or not isinstance(draining, bool):
        raise _unclear(key)
    return FoundServer(address, port, weight, hint=key.rstrip("/").rpartition("/")[2], leaving=draining)


def _endpoint(said: Mapping[str, Any]) -> tuple[str, int]:
    """Address and port, empty and zero where they are not said."""
    if isinstance(url := said.get("URL"), str):
        host, _, text = url.partition("://")[2].rstrip("/").rpartition(":") if "://" in url else url.rpartition(":")
    else:
        host, text = said.get("address", ""), str(said.get("port", ""))
    port = short_number(text)
    if port is None or not isinstance(host, str) or "/" in host:
        return "", 0
    return host.strip("[]").lower(), port


def _unclear(key: str) -> Unclear:
    return Unclear(
        f"Key {harmless(key)} names no server: write host:port, or JSON with address, port, and if need be weight "
        f"(0 to {HIGHEST_WEIGHT}) and draining."
    )
