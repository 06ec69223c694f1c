"""Does the server of a zone answer, and does it take the key? It is asked once, and nothing is written."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from apps.accounts.actors import Actor
from apps.core.caching import pause_between_tests
from apps.core.errors import Conflict, Invalid
from apps.definitions.models import Zone
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.base.writing import copy_plain
from apps.definitions.shapes.traffic.zone import ZoneSpec
from apps.definitions.writing.kinds.zones import only_for_development
from apps.dns.targets import driver_of
from apps.drivers.dns.contract import DnsError

# A person waits for the answer, and so does a process of the console.
ANSWERS_WITHIN_S = 2.0


def typed_zone(document: dict[str, Any]) -> Zone:
    """A zone as somebody typed it, which is stored nowhere. Raises Invalid, as saving it would."""
    spec = read_or_raise(ZoneSpec, document, "/spec")
    if not settings.DEVELOPMENT and (field_errors := list(only_for_development(spec))):
        raise Invalid(field_errors)
    zone = Zone()
    copy_plain(spec, zone)
    return zone


def try_server(*, actor: Actor, zone: Zone) -> str:
    """A sentence about what the zone's server says; the zone may be stored or not.

    Raises Forbidden for whoever may not say where a zone is written, Conflict where the server does not do its part.
    """
    actor.must_operate("zones")
    if zone.driver == Zone.Driver.ROUTE53:
        raise Conflict("This zone belongs to a stack: its cloud account is tested instead.")
    pause_between_tests("dns", actor.account.pk, actor.name)
    try:
        found = driver_of(zone, ANSWERS_WITHIN_S).check()
    except DnsError as error:
        raise Conflict(error.message) from error
    if not found.complete:
        return "It takes the key. It transfers no whole zone, so records of others cannot be listed."
    many = "1 record set" if len(found.records) == 1 else f"{len(found.records):,} record sets"
    return f"It takes the key and serves {many} of {zone.domain}."
