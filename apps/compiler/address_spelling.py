"""The one spelling of an IP address, whatever Python says: definitions are compared and stored by it.

Python 3.13 began to write `::ffff:c000:201` as `::ffff:192.0.2.1`. What is stored must outlast an upgrade of Python.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

GROUPS, ZERO = 8, "0"


def spelled(found: IPv4Address | IPv6Address | IPv4Network | IPv6Network) -> str:
    """An address or network (address/length): IPv6 in lower case, its first longest run of zeros as `::`, no dots.

    A zone (`fe80::1%eth0`) stays.
    """
    if isinstance(found, IPv4Network | IPv6Network):
        return f"{spelled(found.network_address)}/{found.prefixlen}"
    if isinstance(found, IPv4Address):
        return str(found)
    return _of_groups(int(found)) + (f"%{found.scope_id}" if found.scope_id else "")


def _of_groups(number: int) -> str:
    groups = [f"{number >> 16 * index & 0xFFFF:x}" for index in reversed(range(GROUPS))]
    start, length = _longest_zeros(groups)
    if length < 2:
        return ":".join(groups)
    return f"{':'.join(groups[:start])}::{':'.join(groups[start + length :])}"


def _longest_zeros(groups: list[str]) -> tuple[int, int]:
    """Where the first longest run of zero groups begins, and its length."""
    best = (0, 0)
    start = 0
    for index, group in enumerate([*groups, ""]):
        if group != ZERO:
            best = max(best, (start, index - start), key=lambda run: run[1])
            start = index + 1
    return best
