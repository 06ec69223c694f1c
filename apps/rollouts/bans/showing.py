"""Who is banned by a limit of a policy or route, where, by which, and until when, as far as nodes answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from apps.accounts.actors import Actor
from apps.compiler.questions.client_bans import BannedClient, read_key, scopes_of
from apps.compiler.routing import number_of
from apps.core.clock import now
from apps.definitions.freezing.frozen_policies import OWN
from apps.definitions.models import LoadBalancer, Policy, Route
from apps.definitions.previewing.effective_rules import deciders
from apps.drivers.proxy.contract import BanEntries, BanEntry
from apps.fleet.models import Fleet, Node
from apps.rollouts.bans.nodes import ask
from apps.rollouts.models import FleetSync
from apps.rollouts.push import lifecycle
from apps.rollouts.push.revision_store import bundle_of

MOST = 1000
MOST_FLEETS = 50
_BANNING = Q(rules__client_limit__has_key="ban_after")


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit that banned: whose it is, its first routes, and the policy; empty where routes say it themselves."""

    account: str
    policy: str
    routes: tuple[str, ...]
    route_id: int


@dataclass(frozen=True, slots=True)
class Ban:
    """A banned client. `id` names it with its region; `hashed`: only a hash is known of what a header or cookie said.

    `fleet` and `nodes` are empty for customers.
    """

    id: str
    region: str
    client: str
    hashed: bool
    limit: Limit
    until: datetime
    fleet: str = ""
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bans:
    """Those that the actor may see; `silent` counts nodes of which it is unknown whom they ban, `more` says that a
    fleet has bans that were not read."""

    found: tuple[Ban, ...]
    more: bool
    silent: int
    silent_nodes: tuple[str, ...] = ()


def bans(actor: Actor) -> Bans:
    """The bans of all fleets where a limit of the actor's routes bans; of operators, where any does."""
    fleets = list(banning_fleets(actor)[: MOST_FLEETS + 1])
    shown = fleets[:MOST_FLEETS]
    nodes = list(Node.objects.filter(fleet__in=shown).order_by("name"))
    answers = ask(nodes, lambda driver: driver.read_bans())
    found: list[Ban] = []
    more = len(fleets) > MOST_FLEETS
    for fleet in shown:
        told = {
            node.name: answers.found[node.name]
            for node in nodes
            if node.fleet_id == fleet.pk and node.name in answers.found
        }
        of_fleet = list(_of_fleet(actor, fleet, _merged(told)))
        more |= len(of_fleet) > MOST or any(each.more for each in told.values())
        found += of_fleet[:MOST]
    names = answers.silent if actor.is_operator else ()
    return Bans(tuple(sorted(found, key=lambda ban: (ban.until, ban.id))), more, len(answers.silent), names)


def banning_fleets(actor: Actor) -> QuerySet[Fleet]:
    """Fleets with a route that could have a limit that bans: of the actor, or of anybody for operators."""
    policies = Policy.objects.filter(_BANNING)
    saying = _BANNING | Q(account__in=policies.values("account")) | Q(load_balancer__policies__in=policies)
    routes = Route.objects.order_by().filter(saying)
    if not actor.is_operator:
        routes = routes.filter(account=actor.account)
    fronts = LoadBalancer.objects.filter(pk__in=routes.values("load_balancer"))
    rows = Fleet.objects.select_related("region").filter(load_balancers__in=fronts)
    return rows.distinct().order_by("name")


def scopes_of_fleet(fleet: Fleet) -> dict[str, list[str]]:
    """The scopes of limits that ban, in what the fleet should run, with routes of each.

    Nodes of later waves run on with what was before, and ban by that.
    """
    rollout = lifecycle.open_rollout(fleet.pk)
    sync = FleetSync.objects.select_related("wanted").filter(fleet=fleet).first()
    before, wanted = rollout.previous if rollout else None, sync.wanted if sync else None
    found: dict[str, list[str]] = {}
    for revision in (before, wanted):
        if revision is not None:
            found |= scopes_of(bundle_of(revision.pk, revision.digest).files)
    return found


def limits_of(actor: Actor, scopes: Mapping[str, list[str]]) -> dict[str, Limit]:
    """Of these scopes those whose routes the actor may see: all routes of a scope are of one account."""
    ids = {scope: [number_of(route) for route in routes] for scope, routes in scopes.items()}
    wanted = {pk for found in ids.values() for pk in found}
    rows = (
        Route.objects.filter(pk__in=wanted)
        if actor.is_operator
        else Route.objects.filter(pk__in=wanted, account=actor.account)
    )
    known = {row.pk: row for row in rows.select_related("account")}
    firsts = {scope: [pk for pk in found if pk in known] for scope, found in ids.items()}
    said = deciders(Route.objects.filter(pk__in=[found[0] for found in firsts.values() if found]))
    limits = {}
    for scope, found in firsts.items():
        if found:
            source = said.get((found[0], "client_limit"), OWN)
            names = tuple(known[pk].name for pk in found)
            policy = "" if source == OWN else source
            limits[scope] = Limit(known[found[0]].account.name, policy, names, found[0])
    return limits


def _merged(told: Mapping[str, BanEntries]) -> dict[tuple[str, str], tuple[BanEntry, list[str]]]:
    """Each ban once, with the nodes that know of it: they tell each other, so mostly all do."""
    found: dict[tuple[str, str], tuple[BanEntry, list[str]]] = {}
    for node, entries in told.items():
        for entry in entries.entries:
            longest, nodes = found.get((entry.table, entry.key), (entry, []))
            last = max(longest, entry, key=lambda each: each.ends_in_s)
            found[entry.table, entry.key] = (last, [*nodes, node])
    return found


def _of_fleet(
    actor: Actor, fleet: Fleet, entries: Mapping[tuple[str, str], tuple[BanEntry, list[str]]]
) -> Iterable[Ban]:
    scopes = scopes_of_fleet(fleet) if entries else {}
    clients = {key: read_key(key[1], scopes) for key in entries}
    used = {client.scope for client in clients.values() if client}
    limits = limits_of(actor, {scope: scopes[scope] for scope in used})
    for key, (entry, nodes) in entries.items():
        client = clients[key]
        if client and client.scope in limits:
            yield _ban(actor, fleet, entry, nodes, client, limits[client.scope])


def _ban(actor: Actor, fleet: Fleet, entry: BanEntry, nodes: list[str], client: BannedClient, limit: Limit) -> Ban:
    until = now() + timedelta(seconds=entry.ends_in_s)
    of_operator = (fleet.name, tuple(nodes)) if actor.is_operator else ("", ())
    name = f"{entry.table.rpartition('_')[2]}-{entry.key}"
    return Ban(name, fleet.region.name, client.client, client.hashed, limit, until, *of_operator)
