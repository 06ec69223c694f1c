"""The resolver that names of others are asked at: the installation's own, else the machine's."""

from __future__ import annotations

import functools

import dns.resolver
from django.conf import settings


def resolver() -> dns.resolver.Resolver:
    """SPILLWAY_RESOLVERS (`address` or `address:port`), else those of the machine; no answer is kept."""
    return _of(tuple(settings.RESOLVERS))


@functools.lru_cache(maxsize=4)
def _of(addresses: tuple[str, ...]) -> dns.resolver.Resolver:
    if not addresses:
        return dns.resolver.Resolver()
    found = dns.resolver.Resolver(configure=False)
    pairs = [entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "53") for entry in addresses]
    found.nameservers = [address for address, _, _ in pairs]
    found.nameserver_ports = {address: int(port) for address, _, port in pairs}
    return found
