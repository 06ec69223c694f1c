"""Writes of routes: the hostname is claimed, and no two routes of a load balancer match the same requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from apps.accounts.hostnames.claims import HostnameTaken, claim_or_find, claim_unclaimed, unclaimed
from apps.accounts.models import Account, Hostname
from apps.compiler.matching.hosts import ANY, is_wildcard
from apps.compiler.model.shared import Protocol
from apps.core.errors import Conflict, Invalid
from apps.definitions.models import LoadBalancer, Policy, Pool, Route, RoutePolicy, RoutePool
from apps.definitions.previewing.effective_rules import partly_logged
from apps.definitions.shapes.base.writing import copy_objects, write
from apps.definitions.shapes.traffic.route import MATCH, Assertion, RouteSpec
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.policies import expect_named, follow_key_set
from apps.definitions.writing.rules.passwords import stored_rules
from apps.definitions.writing.rules.quotas import expect_growth, expect_objective


def store_route(changes: ChangeSet, owner: Account, row: Route, spec: RouteSpec) -> None:
    """The route and its shares; a claim that it leaves is given up at the end of the transaction if nobody uses it."""
    balancer = changes.named(LoadBalancer, spec.load_balancer, "/spec/load_balancer")
    present = _present_pools(row)
    pools = [
        _pool(changes, owner, share.pool, f"/spec/action/pools/{index}/pool", present)
        for index, share in enumerate(spec.action.pools)
    ]
    mirror = _mirror(changes, owner, spec, pools, present)
    policies = [
        changes.owned(Policy, owner, reference, f"/spec/policies/{index}")
        for index, reference in enumerate(spec.policies)
    ]
    expect_named(changes, owner, spec.rules)
    follow_key_set(changes, owner, spec.rules)
    rules = stored_rules(changes, spec.rules, row.rules) if spec.rules else None
    if not _takes_any_host(changes, owner, spec.hostname, balancer):
        raise Invalid(changes.field_errors.drain())
    stays = row.pk is not None and row.hostname.name == spec.hostname and row.hostname.released_at is None
    keeps = stays and not _verifies(changes, row.hostname)
    hostname, made = (row.hostname, False) if keeps else _claim(changes, owner, spec.hostname)
    if balancer and hostname and not made:  # a name that is new has no route yet
        _reject_identical(changes, row, spec, balancer, hostname)
    if changes.field_errors or balancer is None or hostname is None:
        raise Invalid(changes.field_errors.drain())
    if row.pk is not None:
        changes.affected.add_load_balancer(row.load_balancer_id)
        if row.hostname_id != hostname.pk:
            changes.affected.released_hostnames.add(row.hostname_id)
        changes.affected.touched_routes.add((row.load_balancer_id, row.hostname.name))
    if spec.objective and not row.objective:
        expect_objective(changes, owner)
    _fill(row, owner, spec)
    row.rules = rules
    row.load_balancer, row.hostname = balancer, hostname
    new = row.pk is None
    row.save()
    weights = {pool.pk: share.weight for pool, share in zip(pools, spec.action.pools, strict=True) if pool}
    _make_pools(row, weights, mirror) if new else _store_pools(row, weights, mirror)
    _store_policies(row, [policy for policy in policies if policy], new=new)
    _reject_unmeasured(changes, row)
    changes.affected.add_load_balancer(balancer.pk)
    changes.affected.touched_routes.add((balancer.pk, hostname.name))


def leave_hostname(changes: ChangeSet, row: Route) -> None:
    """What was said of the hostname's routes is asked again, and the claim given up if nobody uses it any more."""
    changes.affected.released_hostnames.add(row.hostname_id)
    changes.affected.touched_routes.add((row.load_balancer_id, row.hostname.name))


def _present_pools(row: Route) -> dict[str, Pool]:
    """The pools that a stored route leads to, by account and name."""
    if row.pk is None:
        return {}
    led = (*(share.pool for share in row.shares), row.mirror)
    return {f"{pool.account.name}/{pool.name}": pool for pool in led if pool}


def _mirror(
    changes: ChangeSet, owner: Account, spec: RouteSpec, pools: list[Pool | None], present: Mapping[str, Pool]
) -> Pool | None:
    """The pool that gets copies: none of those that get the requests."""
    if spec.mirror is None:
        return None
    pool = _pool(changes, owner, spec.mirror, "/spec/mirror", present)
    if pool and pool in pools:
        detail = f"Pool {spec.mirror} already gets requests of this route; mirror to another pool."
        changes.add_error("/spec/mirror", "mirror", detail)
    return pool


def _pool(changes: ChangeSet, owner: Account, reference: str, pointer: str, present: Mapping[str, Pool]) -> Pool | None:
    """A pool of the route. One of another account that the route leads to already stays, also after its grant."""
    pool = present.get(reference if "/" in reference else f"{owner.name}/{reference}") or changes.owned(
        Pool, owner, reference, pointer
    )
    if pool and pool.protocol == Protocol.TCP:
        changes.add_error(pointer, "protocol", f"Pool {reference} speaks tcp; routes need a pool that speaks http.")
    return pool


def _verifies(changes: ChangeSet, claim: Hostname) -> bool:
    """Whether an operator who saves a route thereby verifies a name that waits for its verification."""
    return changes.actor.is_operator and not claim.verification


def _takes_any_host(changes: ChangeSet, owner: Account, name: str, balancer: LoadBalancer | None) -> bool:
    """Whether nothing forbids the hostname: `*` is nobody's in any zone, so it goes with the load balancer."""
    if name != ANY or balancer is None or balancer.account_id == owner.pk:
        return True
    detail = "Only the account that owns the load balancer can take any host; name your hosts."
    changes.add_error("/spec/hostname", "any_host", detail)
    return False


def _claim(changes: ChangeSet, owner: Account, name: str) -> tuple[Hostname | None, bool]:
    """The claim, and whether it was made just now; None and an error where the name is somebody else's."""
    verification = Hostname.Verification.OPERATOR if changes.actor.is_operator else Hostname.Verification.NONE
    made = False

    def claim() -> Hostname:
        nonlocal made
        expect_growth(changes, "Hostname", owner, "/spec/hostname")
        claimed = claim_unclaimed if _is_unclaimed(changes, name) else claim_or_find
        found = claimed(account=owner, name=name, verification=verification)
        if verification and found.waited:
            changes.affected.add_hostname(found.row)
        made = found.made
        return found.row

    try:
        row: Hostname = changes.lookup(("Hostname", owner.pk, name), claim)
    except HostnameTaken as error:
        changes.add_error("/spec/hostname", error.code, str(error))
        return None, False
    return row, made


def _is_unclaimed(changes: ChangeSet, name: str) -> bool:
    """Whether nobody has claimed what the name meets; known of all names of a document after the first of them.

    Whoever asks claims the name, so that it is none any more, and a wildcard meets all that are under it.
    """
    if changes.lookups.unclaimed is None:
        changes.lookups.unclaimed = unclaimed(changes.lookups.new_hostnames)
    found = name in changes.lookups.unclaimed
    if is_wildcard(name) and name != ANY:  # which is no domain
        changes.lookups.unclaimed.clear()
    changes.lookups.unclaimed.discard(name)
    return found


def match_of(found: Mapping[str, Any]) -> tuple[Any, ...]:
    """What besides hostname and path decides whether a request matches (MATCH), so that two can be compared."""
    headers = ((entry["name"].lower(), entry["match"], entry["value"]) for entry in found["headers"])
    others = (
        tuple(sorted((entry["name"], entry["match"], entry["value"]) for entry in found[field]))
        for field in ("query", "cookies")
    )
    plain = (tuple(sorted(found[field])) for field in ("methods", "client_networks"))
    return *plain, tuple(sorted(headers)), *others, found["scheme"] or ""


def _reject_identical(
    changes: ChangeSet, row: Route, spec: RouteSpec, balancer: LoadBalancer, hostname: Hostname
) -> None:
    # One at a time per hostname: the check below and the row that follows must not pass each other.
    Hostname.objects.select_for_update().filter(pk=hostname.pk).first()
    same = Route.objects.filter(
        load_balancer=balancer, hostname=hostname, path=spec.path, path_kind=spec.path_kind
    ).exclude(pk=row.pk)
    wanted = match_of(write(RouteSpec, spec))
    for other in same.only("account", "name", *MATCH):
        if match_of({field: getattr(other, field) for field in MATCH}) == wanted:
            if (other.account_id, other.name) == (hostname.account_id, row.name):
                # It was not there when this write began: the same request went to another console meanwhile.
                raise Conflict(f"Someone created route {row.name} in the same moment; read it before you change it.")
            # The hostname is the owner's, so the other route is one that the actor may see.
            detail = f"Route {other.name} already matches the same requests; change its action or this path."
            changes.add_error("/spec/path", "identical_route", detail)


def _fill(row: Route, owner: Account, spec: RouteSpec) -> None:
    document = write(RouteSpec, spec)
    row.account = owner
    for field in ("path", "path_kind", *MATCH, "prefix_rewrite"):
        setattr(row, field, document[field])
    row.scheme = spec.scheme or ""
    row.action = next(iter(document["action"]))
    row.redirect, row.fixed_response = (document["action"].get(each) for each in ("redirect", "fixed_response"))
    copy_objects(spec, row, "objective")
    if spec.assertions is not None:
        row.assertions = [write(Assertion, _from_own(assertion, owner)) for assertion in spec.assertions]


def _reject_unmeasured(changes: ChangeSet, row: Route) -> None:
    """An objective is counted in request lines; what its route does not log is nobody's to count."""
    if row.objective is None:
        return
    if why := partly_logged(Route.objects.filter(pk=row.pk)).get(row.pk):
        detail = f"{why}, so nobody can count them. Log all of them, or leave objective out."
        changes.add_error("/spec/objective", "not_logged", detail)
        changes.field_errors.raise_any()


def _from_own(assertion: Assertion, owner: Account) -> Assertion:
    """Pools of the route's own account are named without it."""
    pool = assertion.expect.pool and assertion.expect.pool.removeprefix(f"{owner.name}/")
    return replace(assertion, expect=replace(assertion.expect, pool=pool))


def _store_policies(row: Route, wanted: list[Policy], *, new: bool) -> None:
    """The links in their order: the first is the oldest and so the nearest."""
    links = RoutePolicy.objects.filter(route=row).order_by("id")
    stored = [] if new else list(links.values_list("policy_id", flat=True))
    if stored != [policy.pk for policy in wanted]:
        links.delete()
        RoutePolicy.objects.bulk_create(RoutePolicy(route=row, policy=policy) for policy in wanted)


def _make_pools(row: Route, weights: Mapping[int, int], mirror: Pool | None) -> None:
    """The shares and the mirror of a new route."""
    shares = [RoutePool(route=row, pool_id=pool, weight=weight) for pool, weight in weights.items()]
    mirrors = [RoutePool(route=row, pool=mirror, weight=0, mirror=True)] if mirror else []
    RoutePool.objects.bulk_create([*shares, *mirrors])


def _store_pools(row: Route, weights: Mapping[int, int], mirror: Pool | None) -> None:
    """The same of a stored one; a pool may change from one to the other, so an old mirror goes first."""
    mirrors = RoutePool.objects.filter(route=row, mirror=True)
    mirrors.exclude(pool=mirror).delete()
    _store_shares(row, weights)
    if mirror and not mirrors.exists():
        RoutePool.objects.create(route=row, pool=mirror, weight=0, mirror=True)


def _store_shares(row: Route, wanted: Mapping[int, int]) -> None:
    found = {share.pool_id: share for share in RoutePool.objects.filter(route=row, mirror=False)}
    gone = [share.pk for pool, share in found.items() if pool not in wanted]
    if gone:
        RoutePool.objects.filter(pk__in=gone).delete()
    for pool, weight in wanted.items():
        share = found.get(pool)
        if share is None:
            RoutePool.objects.create(route=row, pool_id=pool, weight=weight)
        elif share.weight != weight:
            RoutePool.objects.filter(pk=share.pk).update(weight=weight)
