"""Who may ask at all: named lists of networks, and the block of a policy that allows or denies them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NetworkList:
    """Networks under one name; those that have expired are not among them. `id` is `net-5`."""

    id: str
    label: str
    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """Lists (ids) whose networks are let in or kept out; `deny` decides first, an empty `allow` lets everybody in."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] | None = None
    status: int | None = None
