"""A ban by a limit ends before its time: every node of the region forgets it, since they count together."""

from __future__ import annotations

import re
from ipaddress import IPv6Address

from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit.services import record
from apps.compiler.client_limits import BANNED_TABLE
from apps.compiler.questions.client_bans import BannedClient, read_key
from apps.core.errors import Conflict, FieldError, Invalid, there
from apps.definitions.models import Route
from apps.fleet.models import Node
from apps.rollouts.bans.nodes import ask
from apps.rollouts.bans.showing import Limit, banning_fleets, limits_of, scopes_of_fleet

_ID = re.compile(r"([1-9][0-9]{0,8})-([0-9a-fA-F:.]{2,45})")


def lift_client_ban(*, actor: Actor, region: object, ban: object, reason: str = "") -> str:
    """Let a client of a region in again; the client. Once more it is over its limit, it may be banned again.

    Raises Forbidden, Invalid, NotFound, Conflict where a node did not answer: the ban stands there.
    """
    actor.may_write()
    table, key = _read(region, ban)
    found = there(_found(actor, str(region), key), "There is no such ban, or you may not see it.")
    client, limit = found
    nodes = Node.objects.filter(fleet__region__name=region).order_by("name")
    answers = ask(nodes, lambda driver: driver.lift_ban(table, key))
    with transaction.atomic():
        route = Route.objects.select_related("account").get(pk=limit.route_id)
        record(
            actor=actor,
            action="lift ban",
            kind="Route",
            object_id=route.pk,
            label=f"{route.account.name}/{route.name}",
            account=route.account,
            after={"client": client.client, "policy": limit.policy, "region": region},
            reason=reason,
        )
    if answers.silent:
        which = ", ".join(answers.silent) if actor.is_operator else f"{len(answers.silent)} of {len(nodes)} nodes"
        raise Conflict(f"{which} did not answer, so {client.client} is still banned there; lift the ban again later.")
    return client.client


def _read(region: object, ban: object) -> tuple[str, str]:
    errors = []
    if not isinstance(region, str) or not region:
        errors.append(FieldError("/region", "missing", "Fill in region: the name of one, as the ban says it."))
    found = _ID.fullmatch(ban) if isinstance(ban, str) else None
    try:
        key = str(IPv6Address(found[2])) if found else ""
    except ValueError:
        key = ""
    if found is None or not key:
        errors.append(FieldError("/ban", "ban", "Fill in ban: the id of one, as the list of bans says it."))
        raise Invalid(errors)
    if errors:
        raise Invalid(errors)
    return f"{BANNED_TABLE}{found[1]}", key


def _found(actor: Actor, region: str, key: str) -> tuple[BannedClient, Limit] | None:
    for fleet in banning_fleets(actor):
        scopes = scopes_of_fleet(fleet) if fleet.region.name == region else {}
        client = read_key(key, scopes)
        if client and (limit := limits_of(actor, {client.scope: scopes[client.scope]}).get(client.scope)):
            return client, limit
    return None
