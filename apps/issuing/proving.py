"""How each hostname of an order is proved: by the nodes that serve it, or by a TXT record in one of our zones.

TLS-ALPN-01 is not among them: HAProxy answers TLS by certificates of files and cannot make the one that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Q

from apps.accounts.hostnames.claims import wildcards_over
from apps.accounts.models import Account, Hostname
from apps.core.clock import now
from apps.definitions.issuing.orders import DNS, HTTP, fronts_serving
from apps.definitions.models import CertificateOrder, Record, Zone
from apps.dns.asking import Question, ask, resolvers_of
from apps.dns.models import ZoneSync
from apps.drivers.dns.records import canonical
from apps.fleet.models import Fleet
from apps.rollouts.models import Rollout, Step
from apps.rollouts.push.states import StepState
from apps.rollouts.selectors import is_live

RECORD = "_acme-challenge"
# A node that is down keeps the others from a certificate for so long.
PATIENCE_WITH_NODES = timedelta(minutes=2)


class NotProvable(Exception):
    """A hostname cannot be proved; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Way:
    """How one hostname is proved: `fleets` (ids) answer, or the zone has the record `name`."""

    kind: str
    fleets: tuple[int, ...] = ()
    zone: int = 0
    name: str = ""


def unverified(account: Account, hostnames: Iterable[str]) -> list[str]:
    """Those that the account must verify first; an operator's word is enough."""
    if account.is_operator:
        return []
    wanted = {name: {name, *wildcards_over(name)} for name in hostnames}
    rows = Hostname.objects.filter(account=account, name__in=set().union(*wanted.values()), released_at=None)
    verified = set(rows.exclude(verification="").values_list("name", flat=True))
    return sorted(name for name, enough in wanted.items() if not enough & verified)


def way_of(account: Account, hostname: str) -> Way:
    """How the hostname is proved. Raises NotProvable."""
    bare = hostname.removeprefix("*.")
    fronts = fronts_serving(hostname) if bare == hostname else None
    in_cloud = fronts is not None and fronts.filter(stacks__isnull=False).exists()
    fleets = Fleet.objects.filter(load_balancers__in=fronts).distinct() if fronts is not None else Fleet.objects.none()
    keys = tuple(fleets.order_by("pk").values_list("pk", flat=True))
    if keys and not in_cloud:
        return Way(HTTP, fleets=keys)
    zone = _zone_of(account, bare)
    if zone is not None:
        return _in_zone(zone, f"{RECORD}.{bare}")
    if bare != hostname:
        raise NotProvable(f"{hostname} is proved in DNS: create a zone of {bare} here (not in Route 53).")
    if in_cloud:
        detail = "is served by a cloud, which cannot answer for us"
        raise NotProvable(f"{hostname} {detail}: create a zone of its domain here (not in Route 53).")
    detail = "is served by no http listener, where authorities ask"
    raise NotProvable(f"{hostname} {detail}: add a route of it on one, or create a zone of its domain here.")


def _zone_of(account: Account, name: str) -> Zone | None:
    """The zone nearest to the name that we write: the account's own, or an operator's."""
    labels = name.split(".")
    domains = [".".join(labels[start:]) for start in range(len(labels) - 1)]
    whose = Q(account=account) | Q(account__kind=Account.Kind.OPERATOR)
    rows = Zone.objects.filter(whose, domain__in=domains).exclude(driver=Zone.Driver.ROUTE53)
    return max(rows, key=lambda zone: len(zone.domain), default=None)


def _in_zone(zone: Zone, name: str) -> Way:
    label = name.removesuffix(f".{zone.domain}")
    if Record.objects.filter(zone=zone, label=label, type="CNAME").exists():
        raise NotProvable(f"{name} is a CNAME in the zone {zone.domain}: delete it, the challenge is written there.")
    return Way(DNS, zone=zone.pk, name=name)


def unanswered(order: CertificateOrder) -> str:
    """What is not live yet of an order's answers, in words; empty when everybody gives them."""
    for fleet, generation in order.pushes.get("fleets", {}).items():
        if not is_live(int(fleet), generation) and not _all_that_live(order, int(fleet), generation):
            name = Fleet.objects.filter(pk=fleet).values_list("name", flat=True).first() or "that is deleted"
            return f"Not every node of fleet {name} has the answers."
    for zone in Zone.objects.filter(pk__in=order.pushes.get("zones", {})):
        if missing := _unserved(order, zone, order.pushes["zones"][str(zone.pk)]):
            return missing
    return ""


def _all_that_live(order: CertificateOrder, fleet: int, generation: int) -> bool:
    """Whether, after some patience, only nodes that nobody reaches lack the answers; authorities do not reach them."""
    if order.began_at is None or now() - order.began_at < PATIENCE_WITH_NODES:
        return False
    last = Rollout.objects.filter(fleet=fleet).order_by("-pk").first()
    if last is None or not Fleet.objects.filter(pk=fleet, sync__compiled_generation__gte=generation).exists():
        return False
    if not Fleet.objects.filter(pk=fleet, sync__wanted=last.revision_id, sync__held_at=None).exists():
        return False
    states = set(Step.objects.filter(rollout=last).values_list("state", flat=True))
    return StepState.DONE in states and states <= {StepState.DONE, StepState.UNREACHABLE}


def _unserved(order: CertificateOrder, zone: Zone, generation: int) -> str:
    pushed: Any = ZoneSync.objects.filter(zone=zone).values_list("pushed_generation", flat=True).first() or 0
    if pushed < generation:
        return f"The server of the zone {zone.domain} has not taken the TXT records yet."
    wanted: dict[str, set[str]] = {}
    for each in order.challenges:
        if each["kind"] == DNS and each["zone"] == zone.pk:
            wanted.setdefault(each["name"], set()).add(canonical("TXT", each["answer"], zone.domain))
    for name, values in wanted.items():
        for resolver in resolvers_of(zone):
            answer = ask(Question(0, resolver, name, "TXT", tuple(sorted(values))))
            if not values <= set(answer.values):
                return f"The resolver {resolver} does not have the TXT record {name} yet. {answer.error}".strip()
    return ""
