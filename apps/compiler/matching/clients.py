"""Which certificates a listener asks of clients for a host."""

from __future__ import annotations

from apps.compiler.matching import hosts
from apps.compiler.model.listener_options import ClientCertificates, ClientVerify
from apps.compiler.model.shared import Listener


def wildcard_of(host: str) -> str:
    """`a.b.example` → `*.b.example`."""
    return hosts.ONE_LABEL + host.partition(".")[2]


def entry_for(listener: Listener, name: str) -> ClientCertificates | None:
    """The entry that holds for a host name or wildcard: the one that names it, its wildcard, or nothing."""
    by_name = {host: entry for entry in listener.client_certificates for host in entry.hostnames or ("",)}
    return by_name.get(name) or by_name.get(wildcard_of(name)) or by_name.get("")


def is_required(listener: Listener, name: str) -> bool:
    """Whether requests for the host are refused without a valid certificate."""
    entry = entry_for(listener, name)
    return entry is not None and entry.mode is ClientVerify.REQUIRED
