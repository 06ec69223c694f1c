"""What a field that names an object offers while somebody types: names, with owner and health beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpResponse, QueryDict

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.accounts.selectors import accounts
from apps.adoption.selectors import buckets_of, networks_of, regions_of
from apps.core.errors import Conflict, NotFound
from apps.definitions import selectors as definitions
from apps.definitions.load_targets import hostnames_to_load
from apps.definitions.shapes.base.writing import reference
from apps.observe.selectors import pool_numbers
from apps.web.kit.pages import PageRequest, page, show

OFFERED = 20
OF_LOAD, TARGET_POOL, TARGET_HOSTNAME = "hostnames-to-load", "/spec/target/pool", "/spec/target/hostname"


@dataclass(frozen=True, slots=True)
class Option:
    """A name as a field says it, whose it is, and how it is: state and word of `components/status.html`."""

    name: str
    owner: str = ""
    state: str = ""
    word: str = ""


Options = list[Option]


@page
def options(request: PageRequest, kind: str) -> HttpResponse:
    """The first of a kind in whose name the text occurs, which is the one value that a field sends of itself."""
    text = _cut(next(iter(request.GET.values()), ""))
    if kind in KINDS:
        found = KINDS[kind](request.actor, text)
    elif kind in OF_FORMS and (request.actor.is_operator or kind == OF_LOAD):
        found = OF_FORMS[kind](request.actor, request.GET)
    else:
        raise NotFound("There is no such list of names.")
    return show(request, "pages/search/options.html", {"options": found})


def _cut(text: object) -> str:
    return str(text).replace("\0", "").strip()[:127]


def _pools(actor: Actor, text: str) -> Options:
    owner, slash, name = text.rpartition("/")
    rows = definitions.pools(actor).select_related("account").prefetch_related(None)
    wanted = Q(name__icontains=name) & Q(account__name=owner) if slash else Q(name__icontains=text)
    found = list(rows.filter(wanted | Q(account__name__icontains=text)).order_by("name", "pk")[:OFFERED])
    seen = pool_numbers(actor, [row.pk for row in found])
    return [_pool(reference(row, actor.account.pk), row.account.title, seen.get(row.pk)) for row in found]


def _pool(name: str, owner: str, seen: Any) -> Option:
    if seen is None:
        return Option(name, owner, "unknown")
    servers = "" if seen.servers_up is None else f": {seen.servers_up} of {seen.servers_total} servers up"
    return Option(name, owner, seen.health, f"{seen.health.capitalize()}{servers}")


def _by_name(visible: Callable[[Actor], QuerySet[Any]]) -> Callable[[Actor, str], Options]:
    """Objects by their own name or that of their account."""

    def found(actor: Actor, text: str) -> Options:
        rows = visible(actor).select_related("account").prefetch_related(None)
        rows = rows.filter(Q(name__icontains=text) | Q(account__name__icontains=text)).order_by("name", "pk")
        return [Option(reference(row, actor.account.pk), row.account.title) for row in rows[:OFFERED]]

    return found


def _hostnames(actor: Actor, text: str) -> Options:
    rows = definitions.hostnames(actor).select_related("account").filter(name__icontains=text).order_by("name")
    return [Option(row.name, row.account.title, *_verified(row)) for row in rows[:OFFERED]]


def _verified(row: Hostname) -> tuple[str, str]:
    return ("done", "Verified") if row.verification else ("waiting", "Waiting for verification")


def _to_load(actor: Actor, query: QueryDict) -> Options:
    """Names that a capacity test may load, narrowed by the pool that the form has beside it."""
    pool = definitions.pool_named(actor, _cut(query.get(TARGET_POOL, "")), actor.account)
    names = hostnames_to_load(actor.account, pool, _cut(query.get(TARGET_HOSTNAME, "")), OFFERED)
    return [Option(name) for name in names]


def _accounts(actor: Actor, text: str) -> Options:
    rows = accounts(actor) if actor.is_operator else accounts(actor).filter(pk=actor.account.pk)
    found = rows.filter(Q(name__icontains=text) | Q(title__icontains=text)).order_by("name")[:OFFERED]
    return [Option(row.name, row.title, *(("held", "Suspended") if row.suspended_at else ())) for row in found]


def _of_cloud(typed_in: str, said: Callable[[Actor, QueryDict], Options]) -> Callable[[Actor, QueryDict], Options]:
    """What the cloud says whose account the form has beside the field, narrowed by what is typed; or why it does not.

    What is one of the field's lines already is not offered again.
    """

    def found(actor: Actor, query: QueryDict) -> Options:
        adds = typed_in in ADDED_TO
        text = _cut(query.get("add" if adds else typed_in, ""))
        chosen = query.get(typed_in, "").split() if adds else []
        try:
            options = said(actor, query)
        except Conflict as error:
            return [Option("", error.detail)]
        left = [each for each in options if each.name not in chosen and text in f"{each.name} {each.owner}"]
        return left[:OFFERED]

    return found


def _regions(actor: Actor, query: QueryDict) -> Options:
    return [Option(each) for each in regions_of(actor=actor, cloud_account=_cut(query.get("/spec/cloud_account", "")))]


def _buckets(actor: Actor, query: QueryDict) -> Options:
    return [Option(each) for each in buckets_of(actor=actor, **_where(query))]


def _networks(actor: Actor, query: QueryDict) -> Options:
    return [_with(each.id, each.name, each.block) for each in networks_of(actor=actor, **_where(query))]


def _subnets(actor: Actor, query: QueryDict) -> Options:
    """Those of the network in the form; without one those of each."""
    networks = _chosen_networks(actor, query)
    return [_with(each.id, each.name, each.zone, each.block) for network in networks for each in network.subnets]


def _blocks(actor: Actor, query: QueryDict) -> Options:
    """Those of the network in the form, and of its subnets."""
    networks = _chosen_networks(actor, query)
    found = [each for network in networks for each in (network, *network.subnets) if each.block]
    return [_with(each.block, each.id, each.name) for each in found]


def _chosen_networks(actor: Actor, query: QueryDict) -> list[Any]:
    network = _cut(query.get("/spec/network/vpc", ""))
    return [each for each in networks_of(actor=actor, **_where(query)) if network in ("", each.id)]


def _where(query: QueryDict) -> dict[str, str]:
    account, region = (_cut(query.get(f"/spec/cloud_{name}", "")) for name in ("account", "region"))
    return {"cloud_account": account, "region": region}


def _with(name: str, *more: str) -> Option:
    return Option(name, ", ".join(filter(None, more)))


# Fields of several lines, below which a field of its own adds one.
ADDED_TO = frozenset({"/spec/network/subnets", "/spec/network/vpc_networks"})
OF_FORMS: Mapping[str, Callable[[Actor, QueryDict], Options]] = {
    OF_LOAD: _to_load,
    "cloud-regions": _of_cloud("/spec/cloud_region", _regions),
    "networks": _of_cloud("/spec/network/vpc", _networks),
    "subnets": _of_cloud("/spec/network/subnets", _subnets),
    "blocks": _of_cloud("/spec/network/vpc_networks", _blocks),
    "buckets": _of_cloud("/spec/network/log_bucket", _buckets),
}
KINDS: Mapping[str, Callable[[Actor, str], Options]] = {
    "pools": _pools,
    "certificates": _by_name(definitions.certificates),
    "hostnames": _hostnames,
    "accounts": _accounts,
    "policies": _by_name(definitions.policies),
}
