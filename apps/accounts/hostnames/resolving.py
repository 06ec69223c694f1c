"""The resolver that names of others are asked at: the installation's own, else the machine's."""

from __future__ import annotations

import functools

import dns.resolver
from django.conf import settings
from dns.nameserver import Do53Nameserver

from apps.core.addresses import host_and_port


def resolver() -> dns.resolver.Resolver:
    """SPILLWAY_RESOLVERS (`host_and_port`), else those of the machine; no answer is kept."""
    return _of(tuple(settings.RESOLVERS))


@functools.lru_cache(maxsize=4)
def _of(addresses: tuple[str, ...]) -> dns.resolver.Resolver:
    if not addresses:
        return dns.resolver.Resolver()
    found = dns.resolver.Resolver(configure=False)
    found.nameservers = [Do53Nameserver(*host_and_port(entry, 53)) for entry in addresses]
    return found
