"""How each hostname of an order is proved: by the nodes that serve it, or by a TXT record in one of our zones.

A name whose DNS is elsewhere is proved in one of our zones as well, where a CNAME there sends its challenges here.

TLS-ALPN-01 is not among them: HAProxy answers TLS by certificates of files and cannot make the one that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import dns.exception
from django.db.models import Q, QuerySet

from apps.accounts.hostnames.claims import wildcards_over
from apps.accounts.hostnames.resolving import resolver as name_resolver
from apps.accounts.models import Account, Hostname
from apps.core.clock import now
from apps.definitions.issuing.orders import DNS, HTTP, fronts_serving
from apps.definitions.models import CertificateOrder, Record, Zone
from apps.dns.asking import Question, ask, resolvers_of
from apps.dns.models import ZoneSync
from apps.drivers.dns.records import canonical
from apps.fleet.models import Fleet, Node
from apps.rollouts.models import Rollout, Step
from apps.rollouts.push.due import runs
from apps.rollouts.push.revision_store import snapshot_of
from apps.rollouts.push.states import UNDER_WAY, StepState
from apps.rollouts.selectors import is_live

RECORD = "_acme-challenge"
# Of a domain name, as people write it (RFC 1035).
LONGEST_NAME = 253
PATIENCE_WITH_RESOLVERS_S = 3.0
AT_ONCE = 16
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


def ways_of(account: Account, hostnames: Iterable[str]) -> dict[str, Way]:
    """How each hostname is proved. Raises NotProvable for the first that cannot be."""
    zones = _zones(account)
    ways = {name: _way_here(zones, name) for name in hostnames}
    targets = _cnames_of(sorted({name.removeprefix("*.") for name, way in ways.items() if way is None}))
    ways |= {name: _way_elsewhere(zones, name, targets) for name, way in ways.items() if way is None}
    found = {name: way for name, way in ways.items() if way}
    for name in sorted(ways.keys() - found.keys()):
        raise NotProvable(_what_to_do(account, name))
    return found


def _way_here(zones: QuerySet[Zone], hostname: str) -> Way | None:
    """By the nodes that serve it, else by a zone of its domain."""
    bare = hostname.removeprefix("*.")
    if bare == hostname and not _in_cloud(hostname):
        fleets = Fleet.objects.filter(load_balancers__in=fronts_serving(hostname)).distinct()
        if keys := tuple(fleets.order_by("pk").values_list("pk", flat=True)):
            return Way(HTTP, fleets=keys)
    zone = _zone_of(zones, bare)
    return _in_zone(zone, f"{RECORD}.{bare}") if zone else None


def _in_cloud(hostname: str) -> bool:
    return fronts_serving(hostname).filter(stacks__isnull=False).exists()


def _way_elsewhere(zones: QuerySet[Zone], hostname: str, targets: Mapping[str, str]) -> Way | None:
    """By the zone of ours to which whoever has the name's DNS sends its challenges."""
    bare = hostname.removeprefix("*.")
    before, _, domain = targets[bare].partition(f".{RECORD}.")
    zone = zones.filter(domain=domain).order_by("pk").first() if before == bare else None
    return _in_zone(zone, targets[bare]) if zone else None


def _what_to_do(account: Account, hostname: str) -> str:
    bare = hostname.removeprefix("*.")
    if bare != hostname:
        begin = f"{hostname} is proved in DNS: create a zone of {bare} here (not in Route 53)"
    elif _in_cloud(hostname):
        detail = "is served by a cloud, which cannot answer for us"
        begin = f"{hostname} {detail}: create a zone of its domain here (not in Route 53)"
    else:
        detail = "is served by no http listener, where authorities ask"
        begin = f"{hostname} {detail}: add a route of it on one, create a zone of its domain here"
    zone = _zones(account).filter(account=account).order_by("domain").first()
    if zone is None or len(to := _delegate(bare, zone.domain)) > LONGEST_NAME:
        return f"{begin}."
    return f"{begin}, or make {RECORD}.{bare} a CNAME of {to} where its DNS is."


def _zones(account: Account) -> QuerySet[Zone]:
    """The zones that we write and in which the account's challenges may stand: its own, and an operator's."""
    whose = Q(account=account) | Q(account__kind=Account.Kind.OPERATOR)
    return Zone.objects.filter(whose).exclude(driver=Zone.Driver.ROUTE53)


def _zone_of(zones: QuerySet[Zone], name: str) -> Zone | None:
    """The zone nearest to the name."""
    labels = name.split(".")
    domains = [".".join(labels[start:]) for start in range(len(labels) - 1)]
    return max(zones.filter(domain__in=domains), key=lambda zone: len(zone.domain), default=None)


def _delegate(bare: str, domain: str) -> str:
    """Where challenges of a name may be sent: one name for each hostname, so that no CNAME of anybody's chooses it."""
    return f"{bare}.{RECORD}.{domain}"


def _cnames_of(hostnames: Sequence[str]) -> dict[str, str]:
    """Where each sends its challenges: asked for all at once, as whose DNS is slow holds up its own order only."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(hostnames, pool.map(_cname_of, hostnames), strict=True))


def _cname_of(hostname: str) -> str:
    """What `_acme-challenge` below it is a CNAME of, without the last dot; empty when of nothing, or nobody answers."""
    try:
        (found,) = name_resolver().resolve(f"{RECORD}.{hostname}", "CNAME", lifetime=PATIENCE_WITH_RESOLVERS_S)
    except (dns.exception.DNSException, OSError, ValueError):
        return ""
    return str(found.target).removesuffix(".").lower()


def _in_zone(zone: Zone, name: str) -> Way:
    label = name.removesuffix(f".{zone.domain}")
    if Record.objects.filter(zone=zone, label=label, type="CNAME").exists():
        raise NotProvable(f"{name} is a CNAME in the zone {zone.domain}: delete it, the challenge is written there.")
    return Way(DNS, zone=zone.pk, name=name)


def unanswered(order: CertificateOrder) -> str:
    """What is not live yet of an order's answers, in words; empty when everybody gives them."""
    for fleet, generation in order.pushes.get("fleets", {}).items():
        if not _answers(order, int(fleet), generation):
            name = Fleet.objects.filter(pk=fleet).values_list("name", flat=True).first() or "that is deleted"
            return f"Not every node of fleet {name} has the answers."
    for zone in Zone.objects.filter(pk__in=order.pushes.get("zones", {})):
        if missing := _unserved(order, zone, order.pushes["zones"][str(zone.pk)]):
            return missing
    return ""


def _answers(order: CertificateOrder, fleet: int, generation: int) -> bool:
    live = is_live(fleet, generation) or _all_that_live(order, fleet, generation)
    return live or _although_in_waves(order, fleet)


def _although_in_waves(order: CertificateOrder, fleet: int) -> bool:
    """Whether all nodes have the answers while a change is in waves, which may take longer than an order lives.

    Some nodes have the change and the others what was before, both with the challenges of now (waves/refreshing.py).
    """
    rollout = Rollout.objects.filter(fleet=fleet, state__in=UNDER_WAY).select_related("revision", "previous").first()
    if rollout is None or rollout.previous is None:
        return False
    wanted = {(each["hostname"], each["token"], each["answer"]) for each in order.challenges if each["kind"] == HTTP}
    nodes = Node.objects.filter(fleet=fleet)
    if _is_out_of_patience(order):
        nodes = nodes.filter(report__last_contact_error="")
    if not nodes.exists():
        return False
    for revision in (rollout.revision, rollout.previous):
        given = snapshot_of(revision.pk, revision.digest).challenges or ()
        if wanted <= {(each.host, each.token, each.answer) for each in given}:
            nodes = nodes.exclude(runs(revision.digest))
    return not nodes.exists()


def _is_out_of_patience(order: CertificateOrder) -> bool:
    """Whether nodes that nobody reaches are not waited for any longer: authorities do not reach them."""
    return order.began_at is not None and now() - order.began_at >= PATIENCE_WITH_NODES


def _all_that_live(order: CertificateOrder, fleet: int, generation: int) -> bool:
    """Whether, after some patience, only nodes that nobody reaches lack the answers."""
    if not _is_out_of_patience(order):
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
