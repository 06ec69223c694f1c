"""A load balancer and everything that it uses as documents, which apply takes back; secrets are never among them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import Model, Q, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions import selectors
from apps.definitions.models import Certificate, Listener, LoadBalancer, Pool, Route
from apps.definitions.selectors import envelope
from apps.definitions.server_sources.registries import NAMED
from apps.definitions.serving import led_to_by
from apps.definitions.shapes.servers.source import read_source
from apps.exporting.contract import Export, Notes
from apps.exporting.yaml_text import yaml_text
from apps.fleet import selectors as topology
from apps.fleet.models import Region, StaticIP

Document = dict[str, Any]
# One file is one apply: far below the words that one takes as YAML.
LARGEST_FILE = 600_000
CHUNK = 2000
HEAD = (
    "# {count} objects of load balancer {name}. manage.py apply documents.yaml, or spillway apply -f documents.yaml\n"
)
KEY = "Private keys are never shown; these certificates must be there under their names first:"
UNWRITTEN = "Secrets are never shown; fill them in where the object is not stored yet (policy or route, field, name):"
CLOUD = "Credentials of clouds are not written; these cloud accounts must be there first:"
REGISTRIES = "Servers are looked up where only the operator's file of registries says; it must name these first:"
DEFAULTS = "These policies are the default of other load balancers too, which is left out:"
LISTS_OF = ("allow", "deny")


def documents(actor: Actor, balancer: LoadBalancer) -> Export:
    """Files of documents in the order in which they can be applied."""
    notes = Notes()
    files = dict(_files(balancer.name, _objects(actor, balancer, notes)))
    return Export(files, not_said=notes.lines())


def _files(name: str, objects: Iterable[Document]) -> Iterator[tuple[str, bytes]]:
    """YAML where people may read it; what needs several files is JSON, which is written much faster."""
    parts: list[list[Document]] = [[]]
    size = 0
    for each in objects:
        length = len(json.dumps(each))
        if size + length > LARGEST_FILE and parts[-1]:
            parts.append([])
            size = 0
        parts[-1].append(each)
        size += length
    if len(parts) == 1:
        text = HEAD.format(count=len(parts[0]), name=name) + yaml_text([{"objects": parts[0]}])
        yield "documents.yaml", text.encode()
        return
    for number, part in enumerate(parts, 1):
        yield f"documents-{number:03}.json", (json.dumps({"objects": part}, indent=1) + "\n").encode()


def _objects(actor: Actor, balancer: LoadBalancer, notes: Notes) -> Iterator[Document]:
    """What others name comes first. Routes are read a few thousand at a time: there may be a hundred thousand."""
    routes = selectors.routes(actor).filter(load_balancer=balancer)
    policies = list(_policies(actor, balancer))
    pools = list(_pools(actor, balancer, routes))
    owners = Account.objects.filter(
        Q(pk__in=[each.account_id for each in (*pools, *policies)])
        | Q(pk__in=routes.order_by().values("account"))
        | Q(owned_addresses__listeners__load_balancer=balancer)
    ).distinct()
    customers = [each for each in owners.order_by("name") if not each.is_operator]
    yield from map(_envelope, customers)
    yield from _topology(actor, balancer, pools, _ordered(policies, pools, routes), notes)
    yield from map(_envelope, selectors.grants(actor).filter(account__in=customers))
    yield from _certificates(actor, balancer, pools, notes)
    yield from map(_envelope, _network_lists(actor, balancer, policies, routes))
    for pool in pools:
        _note_registries(pool, notes)
        yield _envelope(pool)
    yield _envelope(selectors.load_balancers(actor).get(pk=balancer.pk))  # policies may name it as their default
    for policy in policies:
        yield _policy(policy, balancer, notes)
    for route in routes.order_by("pk").iterator(chunk_size=CHUNK):
        _note_secrets(f"route {route.account.name}/{route.name}", route.rules or {}, notes)
        yield _envelope(route)


def _envelope(row: Any) -> Document:
    """What is an operator's is whose applies it, as other installations call their operator otherwise."""
    found = envelope(row)
    owner = getattr(row, "account", None)
    if owner is not None and owner.is_operator:
        found.pop("account", None)
    return found


def _pools(actor: Actor, balancer: LoadBalancer, routes: QuerySet[Route]) -> QuerySet[Pool]:
    """Those that routes and listeners lead to, and those that assertions speak of."""
    asserted: set[tuple[str, str]] = set()
    for owner, assertions in routes.exclude(assertions=[]).values_list("account__name", "assertions"):
        for each in assertions:
            account, _, name = str(each["expect"].get("pool") or "").rpartition("/")
            asserted.add((account or owner, name))
    led = Q(route_shares__route__load_balancer=balancer) | led_to_by(balancer.listeners.all())
    for account, name in asserted:
        led |= Q(account__name=account, name=name)
    rows = selectors.pools(actor)
    return rows.filter(pk__in=Pool.objects.filter(led).order_by().values("pk"))


def _policies(actor: Actor, balancer: LoadBalancer) -> QuerySet[Any]:
    """Those that routes name, the defaults of the load balancer, of accounts with routes, and of their hostnames."""
    accounts = Route.objects.filter(load_balancer=balancer).values("account")
    default = Q(account__in=accounts) & (Q(whole_account=True) | ~Q(hostnames=[]))
    wanted = Q(route_links__route__load_balancer=balancer) | Q(load_balancers=balancer) | default
    rows = selectors.policies(actor)
    return rows.filter(pk__in=rows.filter(wanted).order_by().values("pk"))


def _policy(policy: Any, balancer: LoadBalancer, notes: Notes) -> Document:
    """Without other load balancers, which need not be where this goes."""
    found = _envelope(policy)
    label = f"policy {policy.account.name}/{policy.name}"
    _note_secrets(label, policy.rules, notes)
    named = found["spec"]["default_for"]["load_balancers"]
    if any(name != balancer.name for name in named):
        notes.add(DEFAULTS, label)
        found["spec"]["default_for"]["load_balancers"] = [name for name in named if name == balancer.name]
    return found


def _note_secrets(label: str, rules: Mapping[str, Any], notes: Notes) -> None:
    for block, field_name in (("basic_auth", "users"), ("api_keys", "keys")):
        for name in sorted((rules.get(block) or {}).get(field_name) or ()):
            notes.add(UNWRITTEN, f"{label} {block} {name}")


def _note_registries(pool: Pool, notes: Notes) -> None:
    for backend in pool.backends.all():
        if backend.servers_from and read_source(backend.servers_from).kind in NAMED:
            notes.add(REGISTRIES, f"pool {pool.account.name}/{pool.name} {backend.servers_from}")


def _network_lists(
    actor: Actor, balancer: LoadBalancer, policies: Iterable[Any], routes: QuerySet[Route]
) -> Iterator[Model]:
    """Lists that an access block names, of the account that says so or of another one."""
    said = [(each.account.name, each.rules.get("access")) for each in policies]
    of_routes = routes.exclude(rules=None).values_list("account__name", "rules")
    said += [(owner, (rules or {}).get("access")) for owner, rules in of_routes]
    said += list(Listener.objects.filter(load_balancer=balancer).values_list("account__name", "access"))
    wanted = Q(pk=None)
    for owner, access in said:
        for text in {name for part in LISTS_OF for name in (access or {}).get(part) or ()}:
            account, _, name = text.rpartition("/")
            wanted |= Q(account__name=account or owner, name=name)
    yield from selectors.network_lists(actor).filter(wanted)


def _certificates(actor: Actor, balancer: LoadBalancer, pools: Iterable[Pool], notes: Notes) -> Iterator[Document]:
    """Automatic ones whole; of one that somebody uploaded only the name, as its key is never shown."""
    shown = Q(listeners__load_balancer=balancer) | Q(default_of__load_balancer=balancer)
    shown |= Q(pk__in=[each.client_certificate_id for each in pools if each.client_certificate_id])
    rows = selectors.certificates(actor)
    for row in rows.filter(pk__in=Certificate.objects.filter(shown).order_by().values("pk")):
        found = _envelope(row)
        if found["spec"].get("automatic"):
            yield found
        else:
            notes.add(KEY, f"{row.account.name}/{row.name}")


def _ordered(policies: Iterable[Any], pools: Iterable[Pool], routes: QuerySet[Route]) -> set[str]:
    """Names of regions to which overflow goes in an order that somebody chose."""
    rules = [each.rules for each in policies] + list(routes.exclude(rules=None).values_list("rules", flat=True))
    orders = [(each.get("overflow") or {}).get("order") or () for each in rules]
    return {name for order in (*orders, *(pool.overflow_order for pool in pools)) for name in order}


def _topology(
    actor: Actor, balancer: LoadBalancer, pools: Iterable[Pool], named_regions: set[str], notes: Notes
) -> Iterator[Document]:
    """Regions, fleets, stacks and static IPs that the load balancer or its pools name; no nodes."""
    fleets = list(topology.fleets(actor).filter(load_balancers=balancer))
    stacks = list(topology.stacks(actor).filter(load_balancers=balancer))
    ips = list(topology.static_ips(actor).filter(pk__in=StaticIP.objects.filter(listeners__load_balancer=balancer)))
    address_pools = list(topology.address_pools(actor).filter(pk__in=[each.pool_id for each in ips if each.pool_id]))
    rows: list[Any] = [*fleets, *stacks, *ips, *address_pools]
    named = {each.region_id for each in rows}
    named |= {backend.region_id for pool in pools for backend in pool.backends.all()}
    named |= set(Region.objects.filter(name__in=named_regions).values_list("pk", flat=True))
    for region in topology.regions(actor).filter(pk__in=_reached({each for each in named if each})):
        yield _envelope(region)
    yield from map(_envelope, fleets)
    for stack in stacks:
        notes.add(CLOUD, stack.cloud_account.name)
        yield _envelope(stack)
    yield from map(_envelope, (*address_pools, *ips))


def _reached(ids: set[int]) -> set[int]:
    """The regions, and those to which they say a latency."""
    while more := set(Region.objects.filter(latencies_to__from_region__in=ids).values_list("pk", flat=True)) - ids:
        ids |= more
    return ids
