"""Lists of networks against their grammars, once more; who needs a list that is wrong is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_network

from apps.compiler.address_spelling import spelled
from apps.compiler.grammar import GrammarError
from apps.compiler.model.access import ConnectionAccess, NetworkList
from apps.compiler.model.shared import LoadBalancer

MAX_NETWORKS = 10_000
_ID = re.compile(r"(net|geo)-[0-9]{1,18}")
_COUNTRY = re.compile(r"country-[A-Z]{2}")
# Hundreds of thousands, which were read as networks when the database was: only that none says more than itself.
_NETWORK = re.compile(r"[0-9a-f.:]{2,39}/[0-9]{1,3}")


def errors_of_access(access: ConnectionAccess, load_balancer: LoadBalancer) -> Iterator[tuple[str, str, str]]:
    """Field, code and sentence of every list that is missing or wrong."""
    known = {each.id: each for each in load_balancer.network_lists}
    for field, names in (("access.allow", access.allow or ()), ("access.deny", access.deny or ())):
        for each in names:
            if each not in known:
                yield field, "unknown_list", "Save the route again; a list of networks is missing."
            elif sentence := error_of_list(known[each]) or _error_of_countries(known[each], known):
                yield field, "network_list", f"{known[each].label}: {sentence}"


@lru_cache(maxsize=256)
def error_of_list(wanted: NetworkList) -> str:
    """What is wrong with a list, empty for nothing: ids and networks become words of maps."""
    if not _ID.fullmatch(wanted.id) or len(wanted.networks) > MAX_NETWORKS:
        return f"Use at most {MAX_NETWORKS} networks."
    try:
        written = [spelled(ip_network(each if isinstance(each, str) else "")) for each in wanted.networks]
    except ValueError:
        return "Write a network as address/length, such as 192.0.2.0/24."
    if tuple(written) != wanted.networks or len(set(written)) != len(written):
        return "Write each network once, in its canonical form."
    return ""


def _error_of_countries(wanted: NetworkList, known: Mapping[str, NetworkList]) -> str:
    found = [known.get(f"country-{code}") for code in wanted.countries]
    if None in found or bool(found) is not wanted.id.startswith("geo-"):
        return "Save the list again; the networks of a country are missing."
    return next((sentence for each in found if each and (sentence := _error_of_country(each))), "")


@lru_cache(maxsize=256)
def _error_of_country(wanted: NetworkList) -> str:
    if not _COUNTRY.fullmatch(wanted.id) or not all(map(_NETWORK.fullmatch, wanted.networks)):
        return "Read the database of countries again; a network of it is none."
    return ""


def refusing_status(value: object) -> object:
    """A status by which a request is refused."""
    if isinstance(value, bool) or not isinstance(value, int) or not 400 <= value <= 599:
        raise GrammarError("out_of_range", "Use a status from 400 to 599.")
    return value
