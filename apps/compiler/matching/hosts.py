"""The hosts that a route's hostname stands for: one, `*.` one label more, `**.` one label or several more, `*` any."""

from __future__ import annotations

ANY = "*"
ONE_LABEL, SUFFIX = "*.", "**."
# Stands for what a client may ask of a wildcard.
EXAMPLE_LABEL = "any"


def is_wildcard(hostname: str) -> bool:
    """Whether the hostname stands for several hosts."""
    return hostname.startswith("*")


def domain_of(hostname: str) -> str:
    """What stands behind the stars: `**.a.example` → `a.example`, `*` → nothing."""
    return hostname.lstrip("*").removeprefix(".")


def ending_of(hostname: str) -> str:
    """How all hosts of a wildcard end: `.a.example`; nothing for `*`."""
    domain = domain_of(hostname)
    return f".{domain}" if domain else ""


def position_of(hostname: str) -> tuple[int, int]:
    """Sorts hostnames that take the same host: it alone, one label, the longest suffix, any."""
    if not hostname.startswith("*"):
        return 0, 0
    if hostname.startswith(SUFFIX):
        return 2, -len(hostname)
    return (3, 0) if hostname == ANY else (1, 0)


def covers(hostname: str, host: str) -> bool:
    """Whether the hostname stands for this host."""
    if not hostname.startswith("*"):
        return hostname == host
    if hostname.startswith(SUFFIX):
        return host.endswith(hostname[2:])
    return hostname == ANY or hostname[2:] == host.partition(".")[2]


def names_that_cover(host: str) -> tuple[str, ...]:
    """Every hostname that stands for the host, in the order of :func:`position_of`."""
    labels = host.split(".")
    suffixes = (SUFFIX + ".".join(labels[start:]) for start in range(1, len(labels)))
    return host, ONE_LABEL + host.partition(".")[2], *suffixes, ANY


def example_of(hostname: str) -> str:
    """A host that the hostname stands for."""
    if not hostname.startswith("*"):
        return hostname
    return f"{EXAMPLE_LABEL}.{domain_of(hostname) or 'example'}"
