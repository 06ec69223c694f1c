"""How to reach a zone's server; the secret is looked up here, for one call, and kept nowhere.

A reference `env:NAME` stands for the environment variable `SPILLWAY_DNS_NAME` of this process: a prefix, so that nobody
can point a zone at another secret of the process. `SPILLWAY_DNS_NAME_SERVERS` beside it says at which servers it may be
used, so that nobody can show it to a server of their own: the key of an API would travel to it, and what TSIG has
signed could be passed on.
"""

from __future__ import annotations

import os

from apps.compiler.grammar import GrammarError, environment_name
from apps.definitions.models import Zone
from apps.drivers.dns.contract import DnsDriver, Refused, ServerTarget
from apps.drivers.dns.registry import open_dns
from apps.drivers.pins import DNS, MEMORY, Endpoint, NotNamed, named_endpoint

PREFIX, SERVERS = "SPILLWAY_DNS_", "_SERVERS"
# A secret that is named for TSIG, which never travels, is not the key of an API in the clear.
SPEAKS = {"rfc2136": (DNS,), "powerdns": ("https", "http"), "memory": (MEMORY,)}


def driver_of(zone: Zone, seconds: float = 10.0) -> DnsDriver:
    """The driver of the zone, which waits so long for an answer.

    Raises Refused when its reference leads nowhere, or may not be used at its server.
    """
    server, secret = zone.server, ""
    if zone.credentials:
        endpoint, secret = shown_secret(zone.credentials, zone.driver, zone.server)
        server = str(endpoint)
    target = ServerTarget(
        domain=zone.domain,
        server=server,
        secret=secret,
        key_name=zone.key_name,
        key_algorithm=zone.key_algorithm,
        seconds=seconds,
    )
    return open_dns(zone.driver, target)


def shown_secret(reference: str, driver: str, server: str) -> tuple[Endpoint, str]:
    """The server in its one spelling, and what the reference leads to. Raises Refused before anything is sent."""
    try:
        name = environment_name(reference)
    except GrammarError:
        name = ""
    if not name or name.endswith(SERVERS):
        raise Refused(f"A zone's credentials are a reference env:NAME, whose name does not end in {SERVERS}.")
    secret = os.environ.get(PREFIX + name, "")
    if not secret:
        raise Refused(f"Set {PREFIX}{name} in the environment of the workers: the zone's credentials name it.")
    try:
        endpoint = named_endpoint(server, variable=f"{PREFIX}{name}{SERVERS}", whose=reference, given=os.environ)
    except NotNamed as refusal:
        raise Refused(refusal.message) from None
    if endpoint.scheme not in SPEAKS.get(driver, ()):
        raise Refused(f"Nothing was sent. {endpoint} is no server for a zone by {driver}.")
    return endpoint, secret
