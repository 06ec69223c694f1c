"""A question: what can the targets, on which an object stands, do with each of its fields? The table answers it.

Forms ask before anything is typed; what a write refuses, and why, is the same table's word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Q, QuerySet

from apps.accounts.actors import Actor
from apps.compiler.model.capabilities import NodeBuild
from apps.compiler.portability.incompatibilities import Target
from apps.compiler.portability.table.asking import rows_of
from apps.compiler.portability.table.cells import Cell, Column, Row, Verdict
from apps.definitions.freezing.node_builds import builds_by_fleet
from apps.definitions.models import LoadBalancer, Policy, Pool, Route, RoutePool
from apps.definitions.serving import leading_to

__all__ = ["Reach", "Row", "Standing", "Told", "may_differ", "rows_of", "told_of"]
MOST_NAMED = 3
_NAMES = {Target.HAPROXY: "HAProxy", Target.AWS: "AWS", Target.GOOGLE: "Google Cloud"}


@dataclass(frozen=True, slots=True)
class Standing:
    """A load balancer on one target: a cloud, or a fleet with the different builds that its nodes reported.

    `load_balancer` is empty where its name is nobody's business.
    """

    target: Target
    load_balancer: str = ""
    builds: tuple[NodeBuild, ...] = ()

    def cell(self, row: Row, *, tcp: bool) -> Cell:
        """What the target can; of a fleet, what its oldest HAProxy can, and of one that is unknown, the newest."""
        if self.target is Target.HAPROXY:
            return next((cell for each in self.builds if (cell := row.on_build(each)) is not row.haproxy), row.haproxy)
        return row.on(Column.GOOGLE if self.target is Target.GOOGLE else Column.NLB if tcp else Column.ALB)

    def words(self, row: Row) -> str:
        """`AWS`; `HAProxy 2.6` where it is a question of its version."""
        lacking = [each.version for each in self.builds if row.on_build(each) is not row.haproxy]
        version = f" {'.'.join(map(str, min(lacking)))}" if lacking else ""
        return f"{_NAMES[self.target]}{version}"


class Reach(NamedTuple):
    """For whom a policy is the default, by names."""

    account: bool = False
    hostnames: frozenset[str] = frozenset()
    load_balancers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Told:
    """Why a field (or a value of it) is refused and what to do instead, else what is lost; empty where nothing is."""

    refused: str = ""
    remedy: str = ""
    lost: str = ""


def told_of(row: Row, standings: Sequence[Standing], *, tcp: bool = False, alone: bool = False) -> Told:
    """What the table says where an object stands; `alone`: on the one load balancer that the reader has in mind."""
    found: dict[Verdict, dict[tuple[str, str], list[Standing]]] = {Verdict.NOT: {}, Verdict.LOSSY: {}}
    for each in standings:
        cell = each.cell(row, tcp=tcp)
        if cell.verdict in found:
            found[cell.verdict].setdefault((cell.message, cell.remedy), []).append(each)
    refused, lost = found[Verdict.NOT], found[Verdict.LOSSY]
    remedy = " ".join(dict.fromkeys(remedy for _, remedy in refused))
    if alone:
        first = ["Not on this load balancer."] if refused else []
        return Told(" ".join([*first, *(why for why, _ in refused)]), remedy, " ".join(why for why, _ in lost))
    # The sentences name the target, which is the only one.
    only = len({each.target for each in standings}) == 1
    return Told(
        " ".join(f"Not on {_where(row, there)}. {why}" for (why, _), there in refused.items()),
        remedy,
        " ".join(why if only else f"On {_where(row, there)}: {why}" for (why, _), there in lost.items()),
    )


def may_differ(row: Row) -> bool:
    """Whether any target refuses it, or does it with loss."""
    return any(row.on(column).verdict in (Verdict.NOT, Verdict.LOSSY) for column in Column)


def _where(row: Row, standings: Sequence[Standing]) -> str:
    """`AWS (load balancer edge)`."""
    found: dict[str, list[str]] = {}
    for each in standings:
        found.setdefault(each.words(row), []).append(each.load_balancer)
    return " and ".join(f"{words}{_of(sorted(filter(None, set(names))))}" for words, names in found.items())


def _of(names: list[str]) -> str:
    if not names:
        return ""
    shown = [*names[:MOST_NAMED], *([f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else [])]
    text = " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    return f" (load balancer{'s' if len(names) > 1 else ''} {text})"


def standings_of(load_balancer: str) -> tuple[Standing, ...]:
    """Where the load balancer of this name stands; nowhere, where there is none."""
    return _standings(LoadBalancer.objects.filter(name=load_balancer)) if load_balancer else ()


def standings_of_pool(actor: Actor, pool: Pool) -> tuple[Standing, ...]:
    """Where the load balancers stand that lead to a pool; customers read the names of those that they use."""
    shares = RoutePool.objects.filter(pool=pool).order_by()
    leading = Q(pk__in=shares.values("route__load_balancer")) | Q(pk__in=leading_to([pool]).values("load_balancer"))
    own = shares.filter(route__account=actor.account).values_list("route__load_balancer__name", flat=True)
    return _standings(LoadBalancer.objects.filter(leading), None if actor.is_operator else set(own))


def standings_of_policy(policy: Policy | None, account: str, reach: Reach) -> tuple[Standing, ...]:
    """Where the routes stand that name a policy, or for which it would be the default."""
    return _standings(LoadBalancer.objects.filter(_led(policy, account, reach)))


def clouds_of_policy(policy: Policy | None, account: str, reach: Reach) -> tuple[Standing, ...]:
    """As `standings_of_policy`, in clouds only: one query, of no more rows than there are load balancers."""
    fronts = LoadBalancer.objects.filter(_led(policy, account, reach), stacks__isnull=False)
    rows = fronts.order_by("name").values_list("name", "stacks__cloud_account__cloud").distinct()
    return tuple(Standing(Target(cloud), name) for name, cloud in rows)


def followers_of(policy: Policy | None, account: str, reach: Reach) -> Q:
    """The routes that name a policy, or for which it would be the default."""
    following = Q(account__name=account, hostname__name__in=reach.hostnames)
    if reach.account:
        following = Q(account__name=account)
    if reach.load_balancers:
        following |= Q(load_balancer__name__in=reach.load_balancers)
    return following | Q(policy_links__policy=policy) if policy is not None else following


def _led(policy: Policy | None, account: str, reach: Reach) -> Q:
    named = Q(name__in=reach.load_balancers)  # also one without routes: the next one would follow
    routes = Route.objects.order_by().filter(followers_of(policy, account, reach._replace(load_balancers=frozenset())))
    return named | Q(pk__in=routes.values("load_balancer"))


def _standings(fronts: QuerySet[LoadBalancer], named: Collection[str] | None = None) -> tuple[Standing, ...]:
    rows = list(fronts.order_by("name").values_list("name", "fleets", "stacks__cloud_account__cloud").distinct())
    fleets = {fleet for _, fleet, _ in rows if fleet}
    builds = {fleet: _different(found) for fleet, found in builds_by_fleet(fleets).items()} if fleets else {}
    found: dict[Standing, None] = {}
    for name, fleet, cloud in rows:
        shown = name if named is None or name in named else ""
        if fleet:
            found[Standing(Target.HAPROXY, shown, builds[fleet])] = None
        if cloud:
            found[Standing(Target(cloud), shown)] = None
    return tuple(found)


def _different(builds: Iterable[NodeBuild]) -> tuple[NodeBuild, ...]:
    """Each build once, the oldest first, whichever nodes have it."""
    found = sorted({(each.version, each.http3) for each in builds})
    return tuple(NodeBuild("", version, http3) for version, http3 in found)
