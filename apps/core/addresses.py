"""Where a request came from, believing only our own front."""

from __future__ import annotations

import ipaddress

from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """The client's address; empty for a program that speaks over the Unix socket itself.

    1. A remote peer is the client: nothing that it says about itself is believed.
    2. A Unix socket (no address) or loopback is our own front (deploy/console), which replaces X-Forwarded-For by the
       client's address: its last entry counts. Without the header a program on this machine spoke directly.
    """
    peer = request.META.get("REMOTE_ADDR", "")
    forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return forwarded or peer if is_local(peer) else peer


def host_and_port(text: str, usual: int) -> tuple[str, int]:
    """`192.0.2.53`, `192.0.2.53:5353`, `2001:db8::53`, `[2001:db8::53]`, `[2001:db8::53]:5353`."""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
    else:
        host, _, port = text.partition(":") if text.count(":") == 1 else (text, "", "")
    return host, int(port.removeprefix(":") or usual)


def is_address(host: str) -> bool:
    """Whether a host (with or without port) is an IP address and no name."""
    name = host.rpartition(":")[0] or host if "]" not in host else host.partition("]")[0]
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def is_local(address: str) -> bool:
    """Whether an address is this machine's own; so is none at all, which is a Unix socket."""
    if not address:
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
