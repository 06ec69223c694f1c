"""Lists of networks and countries as the compiler reads them: names become ids, what has expired is left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TypeVar

from apps.compiler.model import access as model
from apps.core.clock import now
from apps.definitions.models import Country, NetworkList
from apps.definitions.shapes.base.words import read_instant

A = TypeVar("A", bound=model.ConnectionAccess)


class NetworkLists:
    """The lists of all accounts, looked up once and only where anybody names one."""

    @cached_property
    def _ids(self) -> dict[tuple[int, str], str]:
        rows = NetworkList.objects.values_list("account_id", "name", "pk", "countries")
        return {(account, name): _id_of(pk, countries) for account, name, pk, countries in rows}

    @cached_property
    def names(self) -> dict[str, str]:
        """Id → name."""
        return {found: name for (_, name), found in self._ids.items()}

    def resolved(self, access: A, account: int) -> A:
        """The block with ids of the account's lists. Raises KeyError for one that is gone."""
        allow, deny = (
            None if names is None else tuple(self._ids[account, name] for name in names)
            for names in (access.allow, access.deny)
        )
        return replace(access, allow=allow, deny=deny)


def frozen_lists(blocks: Iterable[model.ConnectionAccess | None]) -> tuple[model.NetworkList, ...]:
    """Every list that any of the blocks names, oldest first, and the countries that these name."""
    wanted = {int(each.partition("-")[2]) for access in blocks if access for each in access.lists}
    if not wanted:
        return ()
    rows = NetworkList.objects.filter(pk__in=wanted).select_related("account").order_by("pk")
    found = tuple(
        model.NetworkList(
            _id_of(row.pk, row.countries),
            f"{row.account.name}/{row.name}",
            networks_of(row.entries),
            tuple(row.countries),
        )
        for row in rows
    )
    return found + _countries({code for each in found for code in each.countries})


def with_lists(
    known: Iterable[model.NetworkList], blocks: Iterable[model.ConnectionAccess | None]
) -> tuple[model.NetworkList, ...]:
    """These lists and those that the blocks name, each once."""
    return tuple({each.id: each for each in (*known, *frozen_lists(blocks))}.values())


def _countries(codes: Collection[str]) -> tuple[model.NetworkList, ...]:
    rows = Country.objects.filter(code__in=codes).order_by("code") if codes else ()
    return tuple(model.NetworkList(f"country-{row.code}", row.code, _networks(row.networks)) for row in rows)


@lru_cache(maxsize=256)
def _networks(text: str) -> tuple[str, ...]:
    """Kept, so that all snapshots that this process has open hold the networks of a country once."""
    return tuple(text.split())


def _id_of(pk: int, countries: Collection[str]) -> str:
    return f"{'geo' if countries else 'net'}-{pk}"


def networks_of(entries: Iterable[dict[str, str]]) -> tuple[str, ...]:
    """The networks that have not expired."""
    moment = now()
    return tuple(
        each["network"] for each in entries if "expires_at" not in each or read_instant(each["expires_at"]) > moment
    )
