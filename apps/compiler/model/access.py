"""Who may connect or ask at all: named lists of networks, and the blocks that allow or deny them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NetworkList:
    """Networks under one name (`net-5`), a name for countries (`geo-6`), or a country's networks (`country-DE`).

    Networks that have expired are not among them.
    """

    id: str
    label: str
    networks: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConnectionAccess:
    """Lists (ids) whose networks are let in or kept out; `deny` decides first, an empty `allow` lets everybody in."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] | None = None

    @property
    def lists(self) -> tuple[str, ...]:
        """Every list that the block names."""
        return (*(self.allow or ()), *(self.deny or ()))


@dataclass(frozen=True, slots=True)
class Access(ConnectionAccess):
    """The same of requests, and the status of those that are refused."""

    status: int | None = None
