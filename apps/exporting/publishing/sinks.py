"""Where definitions are published, as the operator's file says it now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.definitions.server_sources.etcd.client import Etcd
from apps.definitions.server_sources.registries import etcds_to_publish_in

LONGEST = 400
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+/")


@dataclass(frozen=True, slots=True)
class Sink:
    """A prefix of an etcd, and whose definitions go there; `wrong` is why nothing does, in a sentence."""

    registry: str
    prefix: str
    account: str
    etcd: Etcd
    wrong: str = ""

    def __str__(self) -> str:
        return f"{self.registry} {self.prefix}"


def sinks() -> list[Sink]:
    """All that the file names. Raises Unreadable."""
    return [
        Sink(registry[:63], prefix[:LONGEST], str(account)[:63], etcd, _wrong(registry, prefix, account, publish))
        for registry, etcd, publish in etcds_to_publish_in()
        for prefix, account in sorted(publish.items())
    ]


def _wrong(registry: str, prefix: str, account: object, publish: Mapping[str, Any]) -> str:
    if not _NAME.fullmatch(registry):
        return "The name of the etcd must be of small letters, digits and hyphens."
    if not _PREFIX.fullmatch(prefix) or len(prefix) > LONGEST:
        return "Write the prefix as /spillway/acme/: between slashes, of letters, digits, dots, hyphens, _ and ~."
    if not isinstance(account, str):
        return "Name the account whose definitions go there."
    if other := _overlapping(prefix, publish):
        return f"The prefix and {other[:100]} are in each other. Give each account a prefix of its own."
    return ""


def _overlapping(prefix: str, others: Iterable[str]) -> str:
    found = (each for each in others if each != prefix and (each.startswith(prefix) or prefix.startswith(each)))
    return next(found, "")
