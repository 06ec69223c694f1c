"""What came back: addresses that a cloud chose reach their static IPs, names reach records."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import F, Q

from apps.definitions.models import Record, Zone
from apps.definitions.services import request_zone_push
from apps.fleet.models import Stack, StaticIP
from apps.fleet.services import request_stack_push
from apps.stacks.models import StackSync

_ADDRESSES = re.compile(r"ip_(\d{1,18})_addresses", re.ASCII)
_NAME = re.compile(r"lb_(\d{1,18})_dns_name", re.ASCII)
DNS_NAME = "lb_{}_dns_name"


def hand_on(stack_id: int, before: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
    """Store the addresses of the stack's static IPs; zones elsewhere whose records follow something here are pushed.

    Zones on Route 53 that another stack keeps are pushed by that stack, when what they follow has changed (`before` are
    the outputs so far). Inside the caller's transaction. An address that is gone is forgotten, its static IP stays.
    """
    found = {int(match[1]): value for name, value in outputs.items() if (match := _ADDRESSES.fullmatch(name))}
    rows = StaticIP.objects.select_for_update().filter(stack_id=stack_id).order_by("pk")
    changed = [row.pk for row in rows if _store(row, _texts(found.get(row.pk)))]
    followers = Q(static_ip__stack=stack_id) | Q(load_balancer__stacks=stack_id)
    zones = Record.objects.filter(followers).exclude(zone__driver=Zone.Driver.ROUTE53).values("zone")
    request_zone_push(Zone.objects.filter(pk__in=zones))
    names = before.keys() | outputs.keys()
    named = {
        int(match[1]) for name in names if (match := _NAME.fullmatch(name)) and before.get(name) != outputs.get(name)
    }
    moved = Record.objects.filter(Q(static_ip__in=changed) | Q(load_balancer__in=named))
    keepers = moved.exclude(zone__stack=None).exclude(zone__stack=stack_id).values("zone__stack")
    request_stack_push(Stack.objects.filter(pk__in=keepers))


def _store(static_ip: StaticIP, addresses: list[str]) -> bool:
    """Whether they are others than before."""
    first = addresses[0] if addresses else None
    if (static_ip.address, static_ip.addresses) == (first, addresses):
        return False
    StaticIP.objects.filter(pk=static_ip.pk).update(address=first, addresses=addresses, version=F("version") + 1)
    return True


def names_of(load_balancers: Collection[int]) -> dict[int, list[str]]:
    """The DNS names that clouds gave to load balancers (primary keys); what CNAME records follow."""
    applied = list(StackSync.objects.filter(applied__isnull=False).values_list("outputs", flat=True))
    keys = {pk: DNS_NAME.format(pk) for pk in load_balancers}
    return {pk: [outputs[key] for outputs in applied if isinstance(outputs.get(key), str)] for pk, key in keys.items()}


def _texts(value: Any) -> list[str]:
    """Addresses as a list, whether the cloud has one or several; sorted, so that none moves without a reason."""
    values = value if isinstance(value, list) else [value]
    return sorted(each for each in values if isinstance(each, str) and re.fullmatch(r"[0-9A-Fa-f.:]+", each))
