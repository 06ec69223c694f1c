"""What nodes and zones answer for orders that are under way, and how an automatic certificate stands, in words."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from django.db.models import Q, QuerySet

from apps.accounts.hostnames.claims import wildcards_over
from apps.compiler.model.fleet import Challenge
from apps.compiler.model.shared import Protocol
from apps.definitions.models import Certificate, CertificateAuthority, CertificateOrder, LoadBalancer, Zone
from apps.fleet.models import Fleet

ISSUE_TASK = "apps.issuing.tasks.issue_certificates"
HTTP, DNS = "http-01", "dns-01"
TTL = 60
_UNDER_WAY = (CertificateOrder.State.ANSWERING, CertificateOrder.State.VALIDATING)
State = CertificateOrder.State


def fronts_serving(hostname: str) -> QuerySet[LoadBalancer]:
    """Load balancers that serve a host by plain HTTP, where authorities ask: by a route of it, or of one over it."""
    names = [hostname, *wildcards_over(hostname), "*"]
    routed = Q(routes__hostname__name__in=names) & ~Q(routes__hostname__verification="")
    plain = LoadBalancer.objects.filter(listeners__protocol=Protocol.HTTP.value)
    return LoadBalancer.objects.filter(routed, pk__in=plain.values("pk")).distinct()


def challenges_of(fleet: Fleet) -> tuple[Challenge, ...] | None:
    """What the fleet's nodes answer; None where there is no authority that could ask."""
    if not CertificateAuthority.objects.exists():
        return None
    found = {
        Challenge(each["hostname"], each["token"], each["answer"])
        for order in CertificateOrder.objects.filter(state__in=_UNDER_WAY).only("pk", "challenges", "pushes")
        if str(fleet.pk) in order.pushes.get("fleets", {})
        for each in order.challenges
        if each["kind"] == HTTP
    }
    return tuple(sorted(found, key=lambda each: (each.host, each.token)))


def txt_records(zone: Zone) -> dict[str, list[str]]:
    """Absolute name → the values that its TXT record needs for orders under way."""
    found: dict[str, list[str]] = defaultdict(list)
    for order in CertificateOrder.objects.filter(state__in=_UNDER_WAY).only("pk", "challenges", "pushes"):
        if str(zone.pk) in order.pushes.get("zones", {}):
            for each in order.challenges:
                if each["kind"] == DNS and each["zone"] == zone.pk:
                    found[each["name"]].append(each["answer"])
    return {name: sorted(set(values)) for name, values in found.items()}


def is_kept_fresh(certificate: Certificate, moment: datetime) -> bool:
    """Whether its end is no news: an automatic one is renewed at a third of its lifetime, so a quarter is left."""
    begins, ends = certificate.not_before, certificate.not_after
    return bool(certificate.automatic and begins and ends and ends - moment > (ends - begins) / 4)


def in_words(certificate: Certificate, moment: datetime) -> tuple[str, str]:
    """A state (issued, waiting, ordering, failing) and a sentence of an automatic certificate."""
    order: CertificateOrder | None = getattr(certificate, "order", None)
    if order is None:
        return "waiting", "It was not ordered yet."
    if order.state != State.WAITING:
        whom = f" from {order.authority.name}" if order.authority else ""
        doing = {
            State.ANSWERING: "the challenges are on their way to nodes and name servers",
            State.VALIDATING: "the authority checks the hostnames",
            State.FINALIZING: "the authority signs",
        }
        return "ordering", f"It is ordered{whom}: {doing[State(order.state)]}."
    if order.error:
        again = f" The next try is {_when(order.next_at, moment)}."
        kept = " The certificate that it has stays in use." if certificate.chain_pem else ""
        return "failing", f"{order.error}{kept}{again}"
    if order.issued_at is None:
        return "waiting", "It is ordered in a moment."
    return (
        "issued",
        f"{order.issued_by} issued it; it is renewed on {order.renew_at or order.next_at:%d %b %Y, %H:%M} UTC.",
    )


def _when(at: datetime, moment: datetime) -> str:
    minutes = round((at - moment).total_seconds() / 60)
    if minutes < 1:
        return "in a moment"
    return f"in {minutes} min" if minutes < 120 else f"in {minutes // 60} h"
