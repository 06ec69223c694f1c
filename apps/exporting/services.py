"""Reads a load balancer out in a format, for an operator who may read all that is in it; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from django.db.models import Q, QuerySet

from apps.accounts.actors import Actor
from apps.compiler.bundle import FOR_NODES_ALONE, for_people
from apps.compiler.compile import Compilation, CompileError
from apps.compiler.portability.standalone import CONFIG, NotAlone, standalone
from apps.core.errors import FieldError, Forbidden, Invalid, NotFound
from apps.core.secrets.sealing import Unsealable
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Backend, LoadBalancer, Pool, Route
from apps.definitions.selectors import load_balancers
from apps.definitions.serving import led_to_by
from apps.exporting.contract import LOOKED_UP, Export, NotExportable, NotSaid
from apps.exporting.documents import documents
from apps.exporting.folders import with_readme
from apps.exporting.gateway.writing import gateway_manifests
from apps.exporting.terraform import terraform
from apps.fleet.models import Fleet, Stack

P = TypeVar("P", Fleet, Stack)

NOUNS = (
    *("load-balancers", "routes", "pools", "policies", "network-lists", "certificates"),
    *("accounts", "grants", "regions", "fleets", "stacks", "static-ips", "address-pools"),
)
# By request. The command has no such bound.
MOST_ROUTES = 20_000
KEYS_LEFT_OUT = "Private keys are never shown, so put these files there by hand, or run manage.py export:"
HASHES_LEFT_OUT = "Hashes of passwords are never shown, so nobody gets in until you write them into this file:"
COUNTED = (
    "Overflow to other regions, counting with other nodes and addresses that move need nodes that know each other:"
)


@dataclass(frozen=True, slots=True)
class Format:
    """A format that a load balancer leaves in: for whom, what is in the folder, and what every export leaves out."""

    name: str
    title: str
    about: str
    leaves_out: str
    of: str = ""  # what it must be on: a fleet or a stack


FORMATS = {
    each.name: each
    for each in (
        Format(
            "haproxy",
            "HAProxy",
            "A plain haproxy.cfg with its maps and certificates, for one fleet's region. In this folder, "
            "`haproxy -c -f haproxy.cfg` checks it and `haproxy -f haproxy.cfg` runs it.",
            "Overflow to other regions, counting with other nodes, and addresses that move.",
            of="fleet",
        ),
        Format(
            "gateway-api",
            "Kubernetes (Gateway API)",
            "Manifests of the Gateway API. Set gatewayClassName in gateway.yaml to a class of your cluster, then "
            "`kubectl apply -n NAMESPACE -f .` in this folder.",
            "Overflow, limits and all else that the Gateway API cannot say. What protects a path and cannot be said "
            "closes it.",
            of="fleet",
        ),
        Format(
            "documents",
            "Spillway documents",
            "The definitions of the load balancer and of everything that it uses. `manage.py apply FILE` or `spillway "
            "apply -f FILE` takes them, file by file in the order of their names.",
            "Private keys, passwords, API keys and credentials.",
        ),
        Format(
            "terraform",
            "Terraform",
            "What the stack emits of a load balancer on AWS or Google, without a backend of Spillway: `terraform init` "
            "and `terraform plan` in this folder, with credentials of the cloud in the environment. With the "
            "terraform.tfstate that the command writes, the plan makes nothing anew; without it, `terraform import "
            "ADDRESS ID` takes each object over. Only one of both may manage them: do not apply here while the stack "
            "has the load balancer, and do not take it off the stack while its state has it: the next run deletes it.",
            "DNS zones, and other load balancers of the stack.",
            of="stack",
        ),
    )
}


def export(actor: Actor, balancer: LoadBalancer, form: str, *, within: str = "", with_keys: bool = False) -> Export:
    """The folder of a load balancer; `within` is the fleet or the stack. Raises Forbidden, Invalid, NotExportable."""
    _must_read(actor)
    if form not in FORMATS:
        raise Invalid([FieldError("/format", "choice", f"Use one of {', '.join(FORMATS)}.")])
    found = _made(actor, balancer, form, within)
    if not with_keys:
        found = _without_keys(found)
    chosen = FORMATS[form]
    return with_readme(found, f"Load balancer {balancer.name}: {chosen.title}", chosen.about)


def export_by_request(actor: Actor, name: str, form: str, *, within: str = "") -> Export:
    """The same without keys, for a load balancer (`front`, `operator/front`) that is not too large.

    Raises NotFound besides.
    """
    _must_read(actor)
    account, _, own = name.rpartition("/")
    rows = load_balancers(actor).filter(name=own)
    balancer = (rows.filter(account__name=account) if account else rows).first()
    if balancer is None:
        raise NotFound("There is no such load balancer.")
    if Route.objects.filter(load_balancer=balancer)[MOST_ROUTES:].exists():
        detail = f"This load balancer has more than {MOST_ROUTES:,} routes. Run manage.py export {own} on the console."
        raise Invalid([FieldError("/load_balancer", "too_many", detail)])
    try:
        return export(actor, balancer, form, within=within)
    except NotExportable as error:
        raise Invalid([FieldError("/format", "not_exportable", str(error))]) from error


def _must_read(actor: Actor) -> None:
    """It holds routes, pools and policies of every account that uses the load balancer."""
    if not actor.is_operator:
        raise Forbidden("Only operators can export a load balancer: others' routes and pools are in it.")
    for noun in NOUNS:
        if not actor.has_scope(noun, "read"):
            raise Forbidden(f"This token does not have the scope {noun}:read; an export shows them as well.")


def _made(actor: Actor, balancer: LoadBalancer, form: str, within: str) -> Export:
    if form == "documents":
        return documents(actor, balancer)
    try:
        if form == "terraform":
            return terraform(
                _target(balancer, form, within, balancer.stacks.select_related("cloud_account")), _id(balancer)
            )
        fleet = _target(balancer, form, within, balancer.fleets.select_related("region"))
        snapshot, looked_up = snapshot_of(fleet), _looked_up(balancer, fleet)
        if form == "gateway-api":
            return gateway_manifests(snapshot, _id(balancer), looked_up)
        return _haproxy(standalone(snapshot, _id(balancer)), balancer, looked_up)
    except CompileError as error:
        raise NotExportable(f"It cannot be compiled: {error}. Export documents instead.") from error
    except (NotAlone, Unsealable) as error:
        raise NotExportable(f"{error} Export documents instead.") from error


def _id(balancer: LoadBalancer) -> str:
    return f"lb-{balancer.pk}"


def _looked_up(balancer: LoadBalancer, fleet: Fleet) -> tuple[str, ...]:
    """Labels of the pools whose servers in the fleet's region come and go by themselves."""
    used = Q(route_shares__route__load_balancer=balancer) | led_to_by(balancer.listeners.all())
    pools = Pool.objects.filter(used).order_by().values("pk")
    found = Backend.objects.filter(pool__in=pools, region=fleet.region).exclude(servers_from="")
    names = found.order_by("pool__account__name", "pool__name").values_list("pool__account__name", "pool__name")
    return tuple(f"{account}/{name}" for account, name in names)


def _haproxy(
    compilation: Compilation[Mapping[str, bytes]], balancer: LoadBalancer, looked_up: tuple[str, ...]
) -> Export:
    said = [NotSaid(f"{each.message.rstrip('.')}:", (each.label,)) for each in compilation.left_out]
    said += [NotSaid(LOOKED_UP, tuple(f"pool {label}" for label in looked_up))] if looked_up else []
    private = frozenset(path for path, content in compilation.output.items() if _is_private(path, content))
    return Export(compilation.output, private, (*said, NotSaid(COUNTED, (f"load balancer {balancer.name}",))))


def _is_private(path: str, content: bytes) -> bool:
    """Beside private keys stand authorities, public keys of tokens and lists of certificates, which are no secret."""
    return path.startswith(FOR_NODES_ALONE) and (b"PRIVATE KEY" in content or not path.startswith("certs/"))


def _target(balancer: LoadBalancer, form: str, named: str, rows: QuerySet[P]) -> P:
    """The fleet or the stack that is written. Raises Invalid, NotExportable."""
    word, found = FORMATS[form].of, list(rows.order_by("name"))
    chosen = [row for row in found if named in ("", row.name)]
    if not found:
        others = [each.name for each in FORMATS.values() if each.of != word]
        use = f"{', '.join(others[:-1])} or {others[-1]}"
        raise NotExportable(f"{form} needs a {word}, and {balancer.name} is on none. Use {use}.")
    if len(chosen) != 1:
        known = ", ".join(row.name for row in found)
        raise Invalid([FieldError(f"/{word}", "choice", f"Name the {word} of {balancer.name}; there are {known}.")])
    return chosen[0]


def _without_keys(found: Export) -> Export:
    """Nobody reads private keys and hashes of passwords by API or page, so they are not in an archive either."""
    files = {path: content for path, content in found.files.items() if path not in found.private}
    if CONFIG in files:
        files[CONFIG] = for_people(files[CONFIG]).encode()
    left = [NotSaid(KEYS_LEFT_OUT, tuple(sorted(found.private)))] if found.private else []
    changed = tuple(path for path, content in files.items() if content != found.files[path])
    left += [NotSaid(HASHES_LEFT_OUT, changed)] if changed else []
    return replace(found, files=files, private=frozenset(), not_said=(*found.not_said, *left))


__all__ = ["FORMATS", "Format", "export", "export_by_request"]
