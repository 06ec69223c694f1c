"""Who is let in: whether lists of networks refuse a client, and which rules may still refuse a request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from apps.compiler.address_spelling import spelled
from apps.compiler.model.access import ConnectionAccess, NetworkList
from apps.compiler.model.policy import Rules

# They ask for what no question tells.
ASKING = ("basic_auth", "api_keys", "jwt")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a client is not let in: one of `lists` (labels) has it and `denies` it, or they alone are let in."""

    lists: tuple[str, ...]
    denies: bool

    @property
    def sentence(self) -> str:
        """As the end of a sentence."""
        names = ", ".join(self.lists)
        if self.denies:
            return f"the network list {names} denies the client"
        return f"no network list that is allowed has the client: {names}"


def refusal(access: ConnectionAccess | None, lists: Iterable[NetworkList], client: str) -> Refusal | None:
    """Why the block surely refuses a client at this address; nothing is sure of an unknown one."""
    if access is None or not client:
        return None
    networks = _networks_around(client)
    known = {each.id: each for each in lists}
    holding = {each for each in access.lists if each in known and _holds(known[each], known.values(), networks)}
    denying = next((each for each in access.deny or () if each in holding), None)
    if denying:
        return Refusal((known[denying].label,), denies=True)
    if access.allow and holding.isdisjoint(access.allow):
        return Refusal(tuple(known[each].label for each in access.allow if each in known), denies=False)
    return None


def _networks_around(client: str) -> frozenset[str]:
    """Every network that holds the address, as lists spell them: looked up, a list of any length costs little."""
    address = ip_address(client)
    lengths = range(address.max_prefixlen + 1)
    return frozenset(spelled(ip_network((address, length), strict=False)) for length in lengths)


def _holds(named: NetworkList, known: Iterable[NetworkList], around: frozenset[str]) -> bool:
    if not around.isdisjoint(named.networks):
        return True
    countries = {f"country-{code}" for code in named.countries}
    return any(each.id in countries and not around.isdisjoint(each.networks) for each in known)


def guards_of(rules: Rules, client: str) -> tuple[str, ...]:
    """Blocks that may still refuse the request; access is decided where the client is known."""
    limit = rules.client_limit
    found = {
        "access": not client and rules.access is not None and bool(rules.access.lists),
        "client_limit": limit is not None and not limit.log_only,
        **{name: getattr(rules, name) is not None for name in ASKING},
    }
    return tuple(name for name, is_there in found.items() if is_there)
