"""The choice: which driver speaks to the server of a zone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apps.drivers.dns.contract import DnsDriver, Refused, ServerTarget
from apps.drivers.dns.memory import MemoryDriver
from apps.drivers.dns.powerdns import PowerDnsDriver
from apps.drivers.dns.rfc2136 import Rfc2136Driver

DRIVERS: Mapping[str, Callable[[ServerTarget], DnsDriver]] = {
    "rfc2136": Rfc2136Driver,
    "powerdns": PowerDnsDriver,
    "memory": MemoryDriver,
}


def open_dns(driver: str, target: ServerTarget) -> DnsDriver:
    """The driver of a zone; raises Refused when nobody speaks it."""
    if driver not in DRIVERS:
        raise Refused(f"No driver is called {driver}.")
    return DRIVERS[driver](target)
