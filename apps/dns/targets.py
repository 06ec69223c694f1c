"""PUSH of zones: how to reach a zone's server; the secret is looked up here, for one call, and kept nowhere.

A reference `env:NAME` stands for the environment variable `SPILLWAY_DNS_NAME` of this process: a prefix, so that nobody
can point a zone at another secret of the process and a server of their own.
"""

from __future__ import annotations

import os

from apps.definitions.models import Zone
from apps.drivers.dns.contract import DnsDriver, Refused, ServerTarget
from apps.drivers.dns.registry import open_dns

PREFIX = "SPILLWAY_DNS_"


def driver_of(zone: Zone) -> DnsDriver:
    """The driver of the zone; raises Refused when its reference leads nowhere."""
    target = ServerTarget(
        domain=zone.domain,
        server=zone.server,
        secret=secret_of(zone.credentials),
        key_name=zone.key_name,
        key_algorithm=zone.key_algorithm,
    )
    return open_dns(zone.driver, target)


def secret_of(reference: str) -> str:
    """What a reference leads to, empty for none. Raises Refused."""
    if not reference:
        return ""
    kind, _, name = reference.partition(":")
    if kind != "env":
        raise Refused("A zone's credentials are a reference env:NAME.")
    secret = os.environ.get(PREFIX + name, "")
    if not secret:
        raise Refused(f"Set {PREFIX}{name} in the environment of the workers: the zone's credentials name it.")
    return secret
