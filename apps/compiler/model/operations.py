"""The short way: typed runtime operations that change a running HAProxy without a reload.

`plan.py` decides which of them turn one bundle into another; the agent turns each into Runtime API
commands, from ids and values of an allow-list alphabet only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SetMapEntry:
    """Add the key to the map, or change its value; `path` is relative to the bundle (`maps/lb-1-prefix.map`)."""

    path: str
    key: str
    value: str
    op: Literal["set_map_entry"] = "set_map_entry"


@dataclass(frozen=True, slots=True)
class DeleteMapEntry:
    """Remove the key from the map."""

    path: str
    key: str
    op: Literal["delete_map_entry"] = "delete_map_entry"


@dataclass(frozen=True, slots=True)
class ReplaceMap:
    """Replace all entries of a map at once (prepare, add, commit): for large changes."""

    path: str
    op: Literal["replace_map"] = "replace_map"


@dataclass(frozen=True, slots=True)
class SetCertificate:
    """Show clients what a certificate's file holds now (new, set, commit)."""

    path: str
    op: Literal["set_certificate"] = "set_certificate"


@dataclass(frozen=True, slots=True)
class UpdateCertificateList:
    """Add lines to a listener's list of certificates and take others away, as its file says now."""

    path: str
    op: Literal["update_certificate_list"] = "update_certificate_list"


@dataclass(frozen=True, slots=True)
class SetServerWeight:
    """Change a server's weight, 0–256."""

    pool_id: str
    server_id: str
    weight: int
    op: Literal["set_server_weight"] = "set_server_weight"


@dataclass(frozen=True, slots=True)
class SetServerState:
    """Change a server's administrative state: ready, drain or maint."""

    pool_id: str
    server_id: str
    state: Literal["ready", "drain", "maint"]
    op: Literal["set_server_state"] = "set_server_state"


@dataclass(frozen=True, slots=True)
class SetServerMaxconn:
    """Change how many requests a server gets at once before the others queue, 1 and more."""

    pool_id: str
    server_id: str
    maxconn: int
    op: Literal["set_server_maxconn"] = "set_server_maxconn"


@dataclass(frozen=True, slots=True)
class AddServer:
    """Let the worker have a server, as haproxy.cfg says it now."""

    pool_id: str
    server_id: str
    op: Literal["add_server"] = "add_server"


@dataclass(frozen=True, slots=True)
class DeleteServer:
    """Send a server no more requests, and forget it once its connections are gone."""

    pool_id: str
    server_id: str
    op: Literal["delete_server"] = "delete_server"


Operation = (
    SetMapEntry
    | DeleteMapEntry
    | ReplaceMap
    | SetCertificate
    | UpdateCertificateList
    | SetServerWeight
    | SetServerState
    | SetServerMaxconn
    | AddServer
    | DeleteServer
)
