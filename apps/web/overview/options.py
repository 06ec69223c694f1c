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
from apps.adoption.selectors import networks_of
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


def _networks(actor: Actor, query: QueryDict) -> Options:
    """Networks at the cloud whose account the form has beside the field."""
    found, refused = _of_cloud(actor, query)
    text = _cut(query.get("/spec/network/vpc", ""))
    options = [Option(each.id, ", ".join(filter(None, (each.name, each.block)))) for each in found]
    return [each for each in options if text in f"{each.name} {each.owner}"][:OFFERED] or refused


def _subnets(actor: Actor, query: QueryDict) -> Options:
    """Subnets of the network in the form that are not chosen yet; without one those of each."""
    found, refused = _of_cloud(actor, query)
    network, text = (_cut(query.get(name, "")) for name in ("/spec/network/vpc", "add"))
    chosen = query.get("/spec/network/subnets", "").split()
    options = [
        Option(each.id, ", ".join(filter(None, (each.name, each.zone, each.block))))
        for whole in found
        if network in ("", whole.id)
        for each in whole.subnets
        if each.id not in chosen
    ]
    return [each for each in options if text in f"{each.name} {each.owner}"][:OFFERED] or refused


def _of_cloud(actor: Actor, query: QueryDict) -> tuple[list[Any], Options]:
    account, region = (_cut(query.get(f"/spec/cloud_{name}", "")) for name in ("account", "region"))
    try:
        return networks_of(actor=actor, cloud_account=account, region=region), []
    except Conflict as error:
        return [], [Option("", error.detail)]


OF_FORMS: Mapping[str, Callable[[Actor, QueryDict], Options]] = {
    OF_LOAD: _to_load,
    "networks": _networks,
    "subnets": _subnets,
}
KINDS: Mapping[str, Callable[[Actor, str], Options]] = {
    "pools": _pools,
    "certificates": _by_name(definitions.certificates),
    "hostnames": _hostnames,
    "accounts": _accounts,
    "policies": _by_name(definitions.policies),
}
