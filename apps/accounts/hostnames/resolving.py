"""The resolver that names of others are asked at: the installation's own, else the machine's."""

from __future__ import annotations

import functools

import dns.resolver
from django.conf import settings
from dns.nameserver import Do53Nameserver

from apps.core.addresses import host_and_port

# A datagram may be lost: who waits two seconds or longer for an answer has the question asked again meanwhile.
ONE_TRY_S = 0.9


def resolver() -> dns.resolver.Resolver:
    """SPILLWAY_RESOLVERS (`host_and_port`), else those of the machine; no answer is kept."""
    return _of(tuple(settings.RESOLVERS))


@functools.lru_cache(maxsize=4)
def _of(addresses: tuple[str, ...]) -> dns.resolver.Resolver:
    found = dns.resolver.Resolver(configure=not addresses)
    if addresses:
        found.nameservers = [Do53Nameserver(*host_and_port(entry, 53)) for entry in addresses]
    found.timeout = ONE_TRY_S
    return found
