"""What the command palette can do: a verb and the beginning of a name become links, or forms of one button."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from django.db.models import Count, QuerySet
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.canaries import selectors as canaries
from apps.definitions import selectors as definitions
from apps.definitions.filters import filter_routes
from apps.definitions.models import Server
from apps.definitions.shapes.base.writing import reference
from apps.fleet import selectors as topology
from apps.fleet.models import Region
from apps.members.invitations import mail_works
from apps.members.tokens import USUAL_DAYS
from apps.observe.selectors import pool_numbers
from apps.web.accounts.people import may_manage
from apps.web.accounts.tokens import DAYS
from apps.web.routes.rows import canary_at, where_of

OF_EACH = 6
# What becomes of a plan, by the approval that its stack wants.
APPROVALS = {
    "by_hand": "applied once somebody approves it",
    "automatic_safe": "applied at once unless it deletes or replaces",
    "automatic": "applied at once",
}
LEAST = "viewer"  # the role that may least, in every account


@dataclass(frozen=True, slots=True)
class Command:
    """A line of the palette: a link, or with `fields` a form that is sent at once."""

    text: str
    url: str
    fields: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


# What can be made, by the words that people type: name of the page, and whether operators alone have it.
MAKES = {
    "load balancer": ("load-balancer-new", True),
    "route": ("route-new", False),
    "hostname": ("hostname-new", False),
    "pool": ("pool-new", False),
    "policy": ("policy-new", False),
    "network list": ("network-list-new", False),
    "region": ("region-new", True),
    "capacity test": ("capacity-test-new", False),
    "schedule": ("schedule-new", False),
    "fleet": ("fleet-new", True),
    "node": ("node-enrol", True),
    "stack": ("stack-new", True),
    "static IP": ("static-ip-new", True),
    "zone": ("zone-new", True),
    "certificate": ("certificate-new", False),
    "alert rule": ("alert-rule-new", False),
    "alert channel": ("alert-channel-new", False),
    "status page": ("status-page-new", False),
    "saved search": ("saved-search-new", False),
    "customer": ("account-new", True),
    "grant": ("grant-new", True),
    "token": ("token-new", False),
    "webhook": ("webhook-new", False),
    "invitation": ("invite", False),
}
# Pages that the navigation does not name, by what people look for.
SETTINGS = {
    "Security: password, passkeys, second factor": ("mfa_index", False),
    "Sessions of yours": ("usersessions_list", False),
    "Settings of request logs": ("web:requests-settings", False),
    "SQL over requests": ("web:requests-sql", False),
    "Patterns among requests": ("web:request-patterns", False),
    "Saved searches": ("web:saved-searches", False),
    "Log forwards": ("web:log-forwards", False),
    "Trace a request": ("web:route-trace", False),
    "Alert rules": ("web:alert-rules", False),
    "Alert channels": ("web:alert-channels", False),
    "Network lists": ("web:network-lists", False),
    "Sizing": ("web:sizing", False),
    "Blackouts of capacity tests": ("web:blackouts", True),
    "Calendar of schedules": ("web:schedules-calendar", False),
    "Wall screen": ("web:wall", False),
    "Enrolment of nodes": ("web:enrolment", True),
    "Cloud accounts": ("web:cloud-accounts", True),
    "Adopt a load balancer of a cloud": ("web:adopt", True),
    "Import configuration of another load balancer": ("web:import", True),
}


def commands(actor: Actor, text: str) -> list[Command]:
    """What `text` asks for: `drain us-vm-1`, `new pool`, `canary shop 10`, `token ci 30d`, `roll back front`."""
    if actor.role == "viewer":
        return list(_simulate(actor, text))
    return [each for find in FINDERS for each in find(actor, text)]


def settings_named(actor: Actor, text: str) -> list[Command]:
    """Pages that no navigation names."""
    words = text.lower().split()
    return [
        Command(title, reverse(url))
        for title, (url, operators) in SETTINGS.items()
        if all(word in title.lower() for word in words) and (actor.is_operator or not operators)
    ][:OF_EACH]


def _make(actor: Actor, text: str) -> Iterator[Command]:
    found = re.fullmatch(r"(?:new|add|create|invite|enrol)\b\s*(.*)", text, re.IGNORECASE)
    if found is None:
        return
    wanted = found[1].lower()
    named = [noun for noun in MAKES if wanted in noun.lower()]
    for noun in sorted(named, key=lambda each: not each.lower().startswith(wanted))[: 2 * OF_EACH]:
        url, operators = MAKES[noun]
        if actor.is_operator or not operators:
            yield Command(f"New {noun}", reverse(f"web:{url}"))


def _server_state(actor: Actor, text: str) -> Iterator[Command]:
    found = re.fullmatch(r"(drain|ready|maintenance)\s+(\S+)", text, re.IGNORECASE)
    if found is None:
        return
    state = found[1].lower()
    for server in _own_servers(actor).filter(name__icontains=found[2]).exclude(state=state)[:OF_EACH]:
        pool = server.backend.pool
        words = f"Set {server.name} to maintenance" if state == "maintenance" else f"{state.capitalize()} {server.name}"
        yield Command(
            words if state != "ready" else f"Set {server.name} ready",
            reverse("web:pool-servers", args=[pool.pk]),
            {"server": str(server.pk), "do": state},
            f"{pool.account.name}/{pool.name} in {server.backend.region.name}, now {server.state}",
        )


def _own_servers(actor: Actor) -> QuerySet[Server]:
    """Servers of pools that the actor may change, in the order of their names."""
    rows = definitions.servers(actor).select_related("backend__pool__account", "backend__region")
    return rows.order_by("name", "pk")


def _regions(actor: Actor, name: str) -> QuerySet[Region]:
    rows = topology.regions(actor) if actor.is_operator else topology.regions(actor).none()
    return rows.filter(name__icontains=name).order_by("name")[:OF_EACH]


def _drain_region(actor: Actor, text: str) -> Iterator[Command]:
    found = re.fullmatch(r"(drain|resume)\s+(\S+)", text, re.IGNORECASE)
    for region in _regions(actor, found[2]) if found else ():
        if region.drained == (found is not None and found[1].lower() == "resume"):
            words = "Resume traffic of" if region.drained else "Drain region"
            note = "" if region.drained else "shows first where its traffic would go"
            yield Command(f"{words} {region.name}", reverse("web:region-drain", args=[region.name]), note=note)


def _simulate(actor: Actor, text: str) -> Iterator[Command]:
    found = re.fullmatch(r"(?:simulate|what if)(?:\s+(?:losing|lose))?\s*(\S*)", text, re.IGNORECASE)
    if found is None:
        return
    for region in topology.regions(actor).filter(name__icontains=found[1]).order_by("name")[:OF_EACH]:
        url = f"{reverse('web:overflow')}?failed_regions=rgn-{region.pk}#what-if"
        yield Command(f"Simulate losing {region.name}", url, note="changes nothing")


def _roll_back(actor: Actor, text: str) -> Iterator[Command]:
    found = re.fullmatch(r"(roll back|rollback|redeploy|resume)\s+(\S+)", text, re.IGNORECASE)
    if found is None or not actor.is_operator:
        return
    verb = found[1].lower()
    for fleet in topology.fleets(actor).filter(name__icontains=found[2]).order_by("name")[:OF_EACH]:
        if verb == "redeploy":
            yield Command(f"Redeploy fleet {fleet.name}", reverse("web:fleet-push", args=[fleet.pk]), {"reason": ""})
        elif verb == "resume":
            if getattr(getattr(fleet, "sync", None), "held_at_id", None):
                url = reverse("web:fleet-resume", args=[fleet.pk])
                yield Command(f"Resume fleet {fleet.name}", url, {"reason": ""}, "held at an earlier revision")
        else:
            url = f"{reverse('web:rollouts')}?fleet={fleet.name}"
            yield Command(f"Roll back fleet {fleet.name}", url, note="choose the revision")


def _edit(actor: Actor, text: str) -> Iterator[Command]:
    found = re.fullmatch(r"(edit|limit)\s+(\S+)", text, re.IGNORECASE)
    if found is None:
        return
    pools = definitions.pools(actor).prefetch_related(None)
    if not actor.is_operator:
        pools = pools.filter(account=actor.account)
    for pool in pools.filter(name__icontains=found[2])[:OF_EACH]:
        name = f"{pool.account.name}/{pool.name}"
        if found[1].lower() == "limit":
            yield Command(f"Change limits of pool {name}", reverse("web:pool", args=[pool.pk]) + "#servers")
        else:
            yield Command(f"Edit pool {name}", reverse("web:pool-edit", args=[pool.pk]))


def _run(actor: Actor, text: str) -> Iterator[Command]:
    found = re.fullmatch(r"(?:run|test)\s+(\S+)", text, re.IGNORECASE)
    if found is None:
        return
    for row in definitions.capacity_tests(actor).filter(name__icontains=found[1])[:OF_EACH]:
        url = reverse("web:capacity-test", args=[row.pk])
        yield Command(f"Run capacity test {row.name}", f"{url}#start", note="asks first")
    for schedule in definitions.schedules(actor).filter(name__icontains=found[1])[:OF_EACH]:
        yield Command(f"Run schedule {schedule.name}", reverse("web:schedule", args=[schedule.pk]), note="asks first")


def _plan(actor: Actor, text: str) -> Iterator[Command]:
    found = re.fullmatch(r"plan\s+(\S+)", text, re.IGNORECASE)
    if found is None or not actor.is_operator:
        return
    for stack in topology.stacks(actor).filter(name__icontains=found[1]).order_by("name")[:OF_EACH]:
        url = reverse("web:stack-plan", args=[stack.pk])
        yield Command(f"Plan stack {stack.name}", url, {"reason": ""}, APPROVALS[stack.approval])


def _canary(actor: Actor, text: str) -> Iterator[Command]:
    """A share for the pool of a route that has the least, as the page of the route offers it."""
    found = re.fullmatch(r"canary\s+(\S+)(?:\s+(\d{1,2})\s*%?)?", text, re.IGNORECASE)
    percent = int(found[2] or 10) if found else 0
    if found is None or not percent:
        return
    rows = filter_routes(definitions.routes(actor), {"q": found[1]})
    for route in rows.annotate(sides=Count("pools")).filter(sides__gt=1)[:OF_EACH]:
        at = canary_at([share.weight for share in route.shares])
        if at is None or canaries.open_on(actor, route.pk):
            continue
        share = route.shares[at]
        pool, whole = reference(share.pool, route.account_id), sum(each.weight for each in route.shares)
        seen = pool_numbers(actor, [share.pool_id]).get(share.pool_id)
        yield Command(
            f"Send {percent} % of {route.name} to {pool}",
            reverse("web:route-weights", args=[route.pk]),
            {"pool": pool, "percent": str(percent), "version": str(route.version)},
            f"{where_of(route)}, now {100 * share.weight / whole:.3g} %"
            + (", pool is down" if seen and seen.health == "down" else ""),
        )


def _invite(actor: Actor, text: str) -> Iterator[Command]:
    """Into one's own account, with the role that the form begins with; the next page shows the link once."""
    found = re.fullmatch(r"invite\s+(\S+@\S+\.\S+)", text, re.IGNORECASE)
    if found and may_manage(actor, actor.account):
        fields = {"/email": found[1], "/role": LEAST} | ({"mail": "on"} if mail_works() else {})
        note = f"to {actor.account.title}, {'mails the link' if mail_works() else 'shows the link once'}"
        yield Command(f"Invite {found[1]} as {LEAST}", reverse("web:invite"), fields, note)


def _token(actor: Actor, text: str) -> Iterator[Command]:
    """One that only reads, as the form begins; the next page shows its text once."""
    found = re.fullmatch(r"(?:(?:new|create)\s+)?token\s+(\S+?)(?:\s+(\d+)\s*d(?:ays?)?)?", text, re.IGNORECASE)
    days = int(found[2] or USUAL_DAYS) if found else 0
    if found and days in dict(DAYS) and may_manage(actor, actor.account):
        fields = {"/name": found[1], "/role": LEAST, "/expires_in_days": str(days)}
        note = f"reads, changes nothing; expires after {dict(DAYS)[days]}"
        yield Command(f"Create token {found[1]} as {LEAST}", reverse("web:token-new"), fields, note)


FINDERS: tuple[Callable[[Actor, str], Iterator[Command]], ...] = (
    _make,
    _server_state,
    _drain_region,
    _simulate,
    _roll_back,
    _edit,
    _run,
    _plan,
    _canary,
    _invite,
    _token,
)
