"""URLs that name several hosts, as a database with a standby and the Sentinels of a Redis have them."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

NETLOC = re.compile(r"(?<=://)[^/?#]*")


def split(url: str) -> SplitResult:
    """As `urlsplit`, which newer Pythons refuse where one of several hosts stands in brackets (CPython gh-105704)."""
    netloc = NETLOC.search(url)
    if netloc is None:
        return urlsplit(url)
    return urlsplit(url[: netloc.start()] + url[netloc.end() :])._replace(netloc=netloc.group())


def user_and_hosts(netloc: str) -> tuple[str, list[tuple[str, int | None]]]:
    """`user:password@a:1,b` as `user:password@` and [("a", 1), ("b", None)].

    Raises ValueError for a host without a name and for what is no port.
    """
    user, at, rest = netloc.rpartition("@")
    found = [(parts.hostname or "", parts.port) for parts in map(urlsplit, [f"//{each}" for each in rest.split(",")])]
    if len(found) > 1 and not all(host for host, _ in found):
        raise ValueError("a host without a name")
    return user + at, found
