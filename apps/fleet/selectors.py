"""The topology: regions are known to everybody, fleets, nodes, clouds and address pools to operators.

A static IP is known to operators and to the account that it was given to.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from django.db.models import Model, Prefetch, QuerySet

from apps.accounts.actors import Actor
from apps.core.requests import asked_once
from apps.fleet import distances
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Node, Region, RegionLatency, Stack, StaticIP


def regions(_actor: Actor) -> QuerySet[Region]:
    """All regions with how far the others are: whoever defines a pool says in which regions it has servers."""
    known = RegionLatency.objects.select_related("to_region").order_by("to_region__name")
    return Region.objects.select_related("account").prefetch_related(Prefetch("latencies", known)).order_by("name")


def node_regions() -> dict[int, int]:
    """Every node and the region that it stands in, by primary keys."""
    return asked_once("node_regions", lambda: dict(Node.objects.values_list("pk", "fleet__region_id")))


def latency_table(regions: Iterable[Region] | None = None) -> distances.Table:
    """Round trips in ms between every two regions by their ids, with where each number comes from.

    Two queries; one for some regions, as they were read already, and nothing is said of others then.
    """
    rows = Region.objects.all() if regions is None else regions
    coordinates = {row.pk: distances.Coordinates(row.latitude, row.longitude) for row in rows}
    between = RegionLatency.objects.filter(from_region__in=coordinates, to_region__in=coordinates)
    fields = ("from_region_id", "to_region_id", "set_ms", "measured_ms")
    known = {
        (first, second): distances.Known(set_ms, measured_ms)
        for first, second, set_ms, measured_ms in between.values_list(*fields)
    }
    return distances.table(coordinates, known)


def overflow_orders() -> dict[int, list[str]]:
    """For each region with nodes the names of the others, nearest first; three queries."""
    names = dict(Region.objects.filter(fleets__nodes__isnull=False).distinct().values_list("pk", "name"))
    return distances.orders(names, latency_table())


def fleets(actor: Actor) -> QuerySet[Fleet]:
    """Fleets with their region."""
    return actor.visible(Fleet.objects.select_related("account", "region")).order_by("name")


def nodes(actor: Actor) -> QuerySet[Node]:
    """Nodes with their fleet and region."""
    return actor.visible(Node.objects.select_related("account", "fleet__region")).order_by("name")


def cloud_accounts(actor: Actor) -> QuerySet[CloudAccount]:
    """Accounts at clouds."""
    return actor.visible(CloudAccount.objects.select_related("account")).order_by("name")


def stacks(actor: Actor) -> QuerySet[Stack]:
    """Stacks with their cloud account and region."""
    return actor.visible(Stack.objects.select_related("account", "cloud_account", "region")).order_by("name")


def address_pools(actor: Actor) -> QuerySet[AddressPool]:
    """Blocks that static IPs are allotted from."""
    return actor.visible(AddressPool.objects.select_related("account", "region")).order_by("name")


def static_ips(actor: Actor) -> QuerySet[StaticIP]:
    """Static IPs with where they stand; a customer's are those that were given to it."""
    rows = StaticIP.objects.select_related("account", "region", "pool", "stack", "owner")
    return (rows if actor.is_operator else rows.filter(owner=actor.account)).order_by("name")


def static_ips_in_use(actor: Actor) -> QuerySet[StaticIP]:
    """The same with the listeners that bind them."""
    return static_ips(actor).prefetch_related("listeners__load_balancer")


def generations(fleets: Iterable[Model]) -> dict[str, int]:
    """The desired generation of each fleet by its name, as it is stored now."""
    ids = [fleet.pk for fleet in fleets]
    return dict(Fleet.objects.filter(pk__in=ids).order_by("name").values_list("name", "desired_generation"))


def fleet_ids(names: Iterable[str]) -> list[int]:
    """The ids of fleets that a service named to its caller."""
    return list(Fleet.objects.filter(name__in=list(names)).values_list("pk", flat=True))


def addresses_of_installation() -> set[str]:
    """Where nodes, agents and static IPs are reached, and the networks of address pools; three queries."""
    found: set[str | None] = set()
    for address, url in Node.objects.values_list("address", "url"):
        found |= {address, urlsplit(url).hostname}
    for given, allotted in StaticIP.objects.values_list("address", "addresses"):
        found |= {given, *allotted}
    for blocks in AddressPool.objects.values_list("blocks", flat=True):
        found.update(blocks)
    return {address for address in found if address}
