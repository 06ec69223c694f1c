"""Kinds of objects by the words of URLs: which rows of them an actor sees, and the page that shows one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, QuerySet
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.core.errors import NotFound
from apps.definitions import selectors as definitions
from apps.definitions.models import (
    AlertChannel,
    CapacityTest,
    Certificate,
    Listener,
    LoadBalancer,
    NetworkList,
    Policy,
    Pool,
    Record,
    Route,
    Schedule,
    StatusPage,
    Zone,
)
from apps.fleet import selectors as topology
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Node, Region, Stack, StaticIP


@dataclass(frozen=True, slots=True)
class Kind:
    """Objects of one kind: the rows that an actor sees, the list of all, and the page of one.

    A kind whose objects have no page of their own has `page` empty: its list shows them. `key` is what URLs say of
    one, `label` what people call it.
    """

    model: type[Model]
    rows: Callable[[Actor], QuerySet[Any]]
    listed: str
    page: str = ""
    key: str = "pk"
    label: str = "name"

    @property
    def word(self) -> str:
        """What people call the kind."""
        return str(self.model._meta.verbose_name)

    def url(self, row: Any) -> str:
        """Where one of them is shown."""
        return self.url_of(getattr(row, self.key))

    def url_of(self, key: object) -> str:
        """Where the one is shown of which URLs say this."""
        return reverse(f"web:{self.page}", args=[key]) if self.page else self.list_url()

    def list_url(self) -> str:
        """Where all of them are."""
        return reverse(f"web:{self.listed}")


KINDS: dict[str, Kind] = {
    kind.word.lower().replace(" ", "-"): kind
    for kind in (
        Kind(LoadBalancer, definitions.load_balancers, "load-balancers", "load-balancer"),
        Kind(Route, definitions.routes, "routes", "route"),
        Kind(Hostname, definitions.hostnames, "hostnames", "hostname"),
        Kind(Pool, definitions.pools, "pools", "pool"),
        Kind(Policy, definitions.policies, "policies", "policy"),
        Kind(NetworkList, definitions.network_lists, "network-lists", "network-list"),
        Kind(Certificate, definitions.certificates, "certificates"),
        Kind(Zone, definitions.zones, "zones", "zone", label="domain"),
        Kind(CapacityTest, definitions.capacity_tests, "capacity-tests", "capacity-test"),
        Kind(Schedule, definitions.schedules, "schedules", "schedule"),
        Kind(AlertChannel, definitions.alert_channels, "alert-channels", "alert-channel"),
        Kind(StatusPage, definitions.status_pages, "status-pages", "status-page", label="title"),
        Kind(Region, topology.regions, "regions", "region", "name"),
        Kind(Fleet, topology.fleets, "fleets", "fleet"),
        Kind(Node, topology.nodes, "fleets", "node"),
        Kind(Stack, topology.stacks, "stacks", "stack"),
        Kind(StaticIP, topology.static_ips, "static-ips", "static-ip"),
        Kind(AddressPool, topology.address_pools, "static-ips"),
        Kind(CloudAccount, topology.cloud_accounts, "cloud-accounts"),
        Kind(Listener, definitions.listeners, "load-balancers", "load-balancer", "load_balancer_id"),
        Kind(Record, definitions.records, "zones", "zone", "zone_id"),
    )
}
OF_MODEL = {kind.model: name for name, kind in KINDS.items()}


def kind_named(name: str) -> Kind:
    """The kind of an URL's word. Raises NotFound."""
    if name not in KINDS:
        raise NotFound("There is no such kind of object.")
    return KINDS[name]


def kind_of(row: Any) -> tuple[str, Kind]:
    """The word of URLs, and the kind, of a row."""
    name = OF_MODEL[type(row)]
    return name, KINDS[name]
