"""Inside a write: what the targets of a load balancer cannot do is refused, with the reason and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.db.models import Exists, OuterRef, Q

from apps.compiler.portability.incompatibilities import Incompatibility, Target
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import LoadBalancer, Route, RoutePool, Server
from apps.definitions.previewing.portability import incompatibilities_of
from apps.definitions.reading.describing import Document
from apps.definitions.serving import leading_to
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.rules.unsupported_policies import asked_before, policy_behind

CHECKED = ("Route", "Pool", "LoadBalancer")
MAX_ERRORS = 100
_RULES = "rules."
# Parts of a route that its document has below `action`.
_OF_ACTION = ("pools", "redirect", "fixed_response")
Saved = dict[str, dict[int, str]]


def reject_unsupported(changes: ChangeSet) -> None:
    """In the end: Invalid when a route, pool or load balancer that was saved cannot be on a target that it reaches.

    A load balancer is looked at as a whole, since it may just have come there; else only what was saved.
    """
    saved = {kind: changes.deferred.saved.get(kind, {}) for kind in CHECKED}
    if not any(saved.values()):
        return
    field_errors: list[FieldError] = []
    for balancer in _fronts_to_look_at(saved):
        field_errors += _field_errors(balancer, saved, changes.deferred.before["Route"])
    if field_errors:
        raise Invalid(list(dict.fromkeys(field_errors))[:MAX_ERRORS])


def _fronts_to_look_at(saved: Saved) -> list[LoadBalancer]:
    """Load balancers that any of the saved objects is part of: in stacks, and on fleets where a route has a mirror.

    A mirror is all that a fleet refuses of routes, so those without one cost nothing here.
    """
    led = Q(routes__pools__pool__in=saved["Pool"]) | Q(listeners__in=leading_to(saved["Pool"]))
    wanted = Q(pk__in=saved["LoadBalancer"])
    if saved["Route"]:
        fronts = Route.objects.filter(pk__in=list(saved["Route"])).values("load_balancer")
        wanted |= Q(pk__in=fronts)
    if saved["Pool"]:
        wanted |= led
    mirrored = Exists(RoutePool.objects.filter(mirror=True, route__load_balancer=OuterRef("pk")))
    there = Q(stacks__isnull=False) | (Q(fleets__isnull=False) & mirrored)
    rows = LoadBalancer.objects.filter(wanted).filter(there).distinct()
    return list(rows.select_related("account").order_by("name"))


def _field_errors(balancer: LoadBalancer, saved: Saved, before: Mapping[int, Document | None]) -> Iterator[FieldError]:
    whole = saved["LoadBalancer"].get(balancer.pk)
    routes = Route.objects.filter(load_balancer=balancer)
    if whole is None:
        routes = routes.filter(Q(pk__in=list(saved["Route"])) | Q(pools__pool__in=list(saved["Pool"]))).distinct()
    clouds = set(balancer.stacks.values_list("cloud_account__cloud", flat=True))
    on_fleets = balancer.fleets.exists()
    for each in incompatibilities_of(balancer, routes):
        # Of a fleet, only routes: what static IPs it may have is said where they are bound.
        there = on_fleets and _is_route(each) if each.target is Target.HAPROXY else each.target in clouds
        if not each.refused or not there:
            continue
        if each.field.startswith(_RULES) and _number(each) in saved["Route"]:
            yield from _rule_errors(balancer, saved, before, each)
        elif (pointer := _pointer(balancer, saved, each)) is not None:
            yield FieldError(pointer, each.code, f"{_named(each, balancer, saved)}{each.message} {each.remedy}".strip())


def _rule_errors(
    balancer: LoadBalancer, saved: Saved, before: Mapping[int, Document | None], each: Incompatibility
) -> Iterator[FieldError]:
    """Of a saved route: what it newly asks for, by itself or by a policy; all that it asks for where it comes along."""
    number, block = _number(each), each.field.removeprefix(_RULES)
    route = Route.objects.select_related("load_balancer", "hostname").get(pk=number)
    if balancer.pk not in saved["LoadBalancer"] and asked_before(route, block, before.get(number)):
        return
    pointer, said = saved["Route"][number], policy_behind(route, block)
    if said is None:
        yield FieldError(f"{pointer}/spec/rules/{block}", each.code, f"{each.message} {each.remedy}".strip())
        return
    name, is_named = said
    where = "policies" if is_named else "load_balancer"
    whose = f"Policy {name}{'' if is_named else ', a default of this route,'} says {block}."
    yield FieldError(f"{pointer}/spec/{where}", each.code, f"{whose} {each.message} {each.remedy}".strip())


def _number(incompatibility: Incompatibility) -> int:
    """Of the route that it is about; 0 for another kind."""
    prefix, _, number = incompatibility.object_id.partition("-")
    return int(number) if prefix == "route" else 0


def _is_route(incompatibility: Incompatibility) -> bool:
    return incompatibility.object_id.startswith("route-")


def _pointer(balancer: LoadBalancer, saved: Saved, incompatibility: Incompatibility) -> str | None:
    """Where in what was sent the incompatibility is to blame on, None where it was so before."""
    pointer = _pointer_of_object(saved, incompatibility)
    if pointer is not None:
        parts = incompatibility.field.split(".") if incompatibility.field else []
        below = ["action", *parts] if parts[:1] and parts[0] in _OF_ACTION else parts
        if incompatibility.object_id.startswith("srv-"):
            below = ["backends"]
        return "/".join([f"{pointer}/spec", *below])
    whole = saved["LoadBalancer"].get(balancer.pk)
    where = "fleets" if incompatibility.target is Target.HAPROXY else "stacks"
    return None if whole is None else f"{whole}/spec/{where}"


def _pointer_of_object(saved: Saved, incompatibility: Incompatibility) -> str | None:
    prefix, _, number = incompatibility.object_id.partition("-")
    if prefix == "srv":
        pool = Server.objects.values_list("backend__pool", flat=True).get(pk=int(number))
        return saved["Pool"].get(pool)
    kind = {"route": "Route", "pool": "Pool"}.get(prefix)
    return saved[kind].get(int(number)) if kind else None


def _named(incompatibility: Incompatibility, balancer: LoadBalancer, saved: Saved) -> str:
    """Which object it is, where the pointer does not say so."""
    if _pointer_of_object(saved, incompatibility) is not None:
        return ""
    where = "on a fleet" if incompatibility.target is Target.HAPROXY else "in a stack"
    return f"{incompatibility.label} {where} of {balancer.name}: "
