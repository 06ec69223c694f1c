"""URLs that name several hosts, as a database with a standby and the Sentinels of a Redis have them."""

from __future__ import annotations

from urllib.parse import urlsplit


def user_and_hosts(netloc: str) -> tuple[str, list[tuple[str, int | None]]]:
    """`user:password@a:1,b` as `user:password@` and [("a", 1), ("b", None)].

    Raises ValueError for a host without a name and for what is no port.
    """
    user, at, rest = netloc.rpartition("@")
    found = [(parts.hostname or "", parts.port) for parts in map(urlsplit, [f"//{each}" for each in rest.split(",")])]
    if len(found) > 1 and not all(host for host, _ in found):
        raise ValueError("a host without a name")
    return user + at, found
