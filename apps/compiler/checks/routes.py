"""What routes must satisfy together: one action each, known pools, one owner per host name, no twins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from apps.compiler.checks.examination import Notes
from apps.compiler.matching.hosts import ANY, SUFFIX, domain_of, is_wildcard
from apps.compiler.model.shared import AnyPool, LoadBalancer, PathKind, Protocol, Route, ValueCondition
from apps.compiler.questions.loops import loop_message, loop_of
from apps.compiler.routing import is_conditional, number_of

MAX_POOLS = 8
Owner = tuple[int, str]


def check_action(notes: Notes, route: Route, pools: Mapping[str, AnyPool]) -> None:
    """Exactly one of pools, redirect, fixed response; pools that are there, speak http and carry some weight."""
    if sum((bool(route.pools), route.redirect is not None, route.fixed_response is not None)) != 1:
        notes.quarantine(route, "one_action", "Give the route exactly one of pools, a redirect or a fixed response.")
    if (
        route.redirect is not None
        and route.redirect.prefix is not None
        and (route.redirect.path is not None or route.path_kind is not PathKind.PREFIX)
    ):
        notes.quarantine(route, "prefix", "Redirect to a prefix on a prefix route, without a path.", "redirect.prefix")
    if not route.pools:
        if route.mirror_pool_id is not None:
            notes.quarantine(route, "mirror", "Only a route to pools can mirror its requests.", "mirror")
        return
    if len(route.pools) > MAX_POOLS:
        notes.quarantine(route, "too_many_pools", f"Split a route among at most {MAX_POOLS} pools.", "pools")
    if not any(share.weight > 0 for share in route.pools):
        notes.quarantine(route, "weights_zero", "Give at least one pool of the route a weight above 0.", "pools")
    if len({share.pool_id for share in route.pools}) != len(route.pools):
        notes.quarantine(route, "pool_twice", "Name each pool of the route once.", "pools")
    for share in route.pools:
        _check_pool(notes, route, share.pool_id, pools.get(share.pool_id), "pools")
    if route.mirror_pool_id is not None:
        _check_pool(notes, route, route.mirror_pool_id, pools.get(route.mirror_pool_id), "mirror")


def _check_pool(notes: Notes, route: Route, pool_id: str, pool: AnyPool | None, where: str) -> None:
    if pool is None or notes.is_out(pool_id):
        label = pool.label if pool else "one of the route's"
        notes.quarantine(route, "unknown_pool", f"Choose an existing pool; {label} is missing or left out.", where)
    elif pool.protocol is Protocol.TCP:
        notes.quarantine(route, "pool_protocol", f"Choose an http pool; {pool.label} speaks tcp.", where)


def check_owners(notes: Notes, routes: Iterable[Route]) -> None:
    """A host name, a wildcard and the names under it belong to the account of the oldest route; `*` is everybody's.

    1. When every host name has one account and there is no wildcard, nothing can overlap.
    2. Find the oldest claim of every host name.
    3. A name under a wildcard and the wildcard are one claim: the older of the two wins.
    4. Routes of other accounts are left out.
    """
    routes = [route for route in routes if route.hostname != ANY]
    if not _may_overlap(routes):
        return
    claims: dict[str, Owner] = {}
    for route in routes:
        claim = (number_of(route.id), route.account)
        for name in (route.hostname, _family(route.hostname)):
            claims[name] = min(claims.get(name, claim), claim)
    wildcards = {route.hostname for route in routes if route.hostname.startswith("*.")}
    owners = _owners_of_suffixes(routes)
    for route in routes:
        family = _family(route.hostname)
        owner = claims[family] if family.removeprefix("family ") in wildcards else claims[route.hostname]
        owner = min([owner, *(owners[each] for each in _suffixes_over(route.hostname) if each in owners)])
        if owner[1] != route.account:
            notes.quarantine(
                route,
                "hostname_owner",
                f"Use a host name of your own; {route.hostname} belongs to another account.",
                "hostname",
            )


def _owners_of_suffixes(routes: Iterable[Route]) -> dict[str, Owner]:
    """`**.` hostname → who has the oldest route of it or of a name under it."""
    owners: dict[str, Owner] = {}
    suffixes = {route.hostname for route in routes if route.hostname.startswith(SUFFIX)}
    for route in routes if suffixes else ():
        claim = (number_of(route.id), route.account)
        for name in _suffixes_over(route.hostname):
            if name in suffixes:
                owners[name] = min(owners.get(name, claim), claim)
    return owners


def _suffixes_over(hostname: str) -> Iterator[str]:
    """`**.` hostnames that share hosts with this one: it itself, and those over it."""
    labels = domain_of(hostname).split(".")
    yield from (f"{SUFFIX}{'.'.join(labels[start:])}" for start in range(not is_wildcard(hostname), len(labels) - 1))


def _may_overlap(routes: list[Route]) -> bool:
    """Whether two accounts could meet at one name; answers quickly for the usual case that they do not."""
    accounts: dict[str, str] = {}
    alone = all(accounts.setdefault(route.hostname, route.account) == route.account for route in routes)
    wildcard = any(map(is_wildcard, accounts))
    return not alone or (wildcard and len(set(accounts.values())) > 1)


def _family(hostname: str) -> str:
    """The claim that a name shares with the wildcard over it."""
    return "family *." + hostname.partition(".")[2]


def check_twins(notes: Notes, load_balancer: LoadBalancer) -> None:
    """Of routes with the same host, path and conditions only the oldest could ever win; the others are left out."""
    oldest: dict[object, Route] = {}
    for route in sorted(load_balancer.routes, key=lambda route: number_of(route.id)):
        if notes.is_out(route.id):
            continue
        first = oldest.setdefault(_identity(route), route)
        if first is not route:
            message = f"Change host, path or conditions; route {first.label} already takes these requests."
            notes.quarantine(route, "identical_route", message, "path")


def check_loops(notes: Notes, load_balancer: LoadBalancer) -> None:
    """A redirect that leads back to its own route, on a listener that serves it, is left out."""
    redirects = [route for route in load_balancer.routes if route.redirect is not None and not notes.is_out(route.id)]
    for route in redirects:
        if protocol := loop_of(route, load_balancer):
            notes.quarantine(route, "redirect_loop", loop_message(protocol), "redirect")


def _identity(route: Route) -> object:
    key = (route.hostname, route.path, route.path_kind, route.scheme)
    if not is_conditional(route):
        return key
    groups = ((_name_of_header, route.headers), (_name_as_it_is, route.query), (_name_as_it_is, route.cookies))
    said = (frozenset((name(each), each.match, each.value) for each in group) for name, group in groups)
    return (*key, frozenset(route.methods), *said, frozenset(route.client_networks))


def _name_of_header(condition: ValueCondition) -> str:
    return condition.name.lower()


def _name_as_it_is(condition: ValueCondition) -> str:
    return condition.name
