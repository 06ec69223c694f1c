"""PUSH to clouds, what came back: addresses that a cloud chose reach their static IPs, names reach records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import F, Q

from apps.definitions.models import Record, Zone
from apps.definitions.services import want_zone_push
from apps.fleet.models import StaticIP
from apps.stacks.models import StackSync

_ADDRESSES = re.compile(r"ip_(\d{1,18})_addresses", re.ASCII)
DNS_NAME = "lb_{}_dns_name"


def hand_on(stack_id: int, outputs: Mapping[str, Any]) -> None:
    """Store the addresses of the stack's static IPs; zones elsewhere whose records follow something here are pushed.

    Inside the caller's transaction. An address that is gone is forgotten, its static IP stays.
    """
    found = {int(match[1]): value for name, value in outputs.items() if (match := _ADDRESSES.fullmatch(name))}
    for static_ip in StaticIP.objects.select_for_update().filter(stack_id=stack_id):
        _store(static_ip, _texts(found.get(static_ip.pk)))
    followers = Q(static_ip__stack=stack_id) | Q(load_balancer__stacks=stack_id)
    zones = Record.objects.filter(followers).exclude(zone__driver=Zone.Driver.ROUTE53).values("zone")
    want_zone_push(Zone.objects.filter(pk__in=zones))


def _store(static_ip: StaticIP, addresses: list[str]) -> None:
    first = addresses[0] if addresses else None
    if (static_ip.address, static_ip.addresses) == (first, addresses):
        return
    StaticIP.objects.filter(pk=static_ip.pk).update(address=first, addresses=addresses, version=F("version") + 1)


def names_of(load_balancer_id: int) -> Iterable[str]:
    """The DNS names that clouds gave to a load balancer; what CNAME records follow."""
    wanted = DNS_NAME.format(load_balancer_id)
    for outputs in StackSync.objects.filter(applied__isnull=False).values_list("outputs", flat=True):
        if isinstance(outputs.get(wanted), str):
            yield outputs[wanted]


def _texts(value: Any) -> list[str]:
    """Addresses as a list, whether the cloud has one or several; sorted, so that none moves without a reason."""
    values = value if isinstance(value, list) else [value]
    return sorted(each for each in values if isinstance(each, str) and re.fullmatch(r"[0-9A-Fa-f.:]+", each))
