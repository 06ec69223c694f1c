"""DEFINE: a static IP moves from one load balancer to another, or is detached: one change, whole or not at all."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.core.errors import Conflict, Fault, Invalid, NotFound
from apps.definitions.describing import envelope
from apps.definitions.models import Listener, LoadBalancer
from apps.definitions.selectors import load_balancers
from apps.definitions.services.documents import apply_document
from apps.fleet.models import StaticIP
from apps.fleet.selectors import static_ips

Document = dict[str, Any]


def move_static_ip(*, actor: Actor, name: str, load_balancer: str, listener: str = "", reason: str = "") -> StaticIP:
    """Attach the address to another load balancer; whatever binds it now lets go in the same transaction.

    `listener` names the one that takes it; without it those take it that have the protocol and port of the listeners
    that let go, else all that have no address yet. Raises Forbidden, NotFound, Invalid, Conflict.
    """
    actor.must_operate("static IPs")
    address = _address(actor, name)
    target = load_balancers(actor).filter(name=load_balancer).first()
    if target is None:
        raise Invalid([Fault("/load_balancer", "unknown", f"There is no load balancer {load_balancer}.")])
    old = list(Listener.objects.filter(static_ip=address).select_related("load_balancer").order_by("pk"))
    takers = _takers(target, old, listener)
    if {each.pk for each in takers} <= {each.pk for each in old}:
        return address  # it is there already
    # Who takes it comes first: then the port on the nodes' own addresses is free for who lets go.
    objects = [_changed(target, {each.name for each in takers}, address.name)]
    objects += [
        _changed(front, {each.name for each in old if each.load_balancer_id == front.pk}, None)
        for front in _fronts(actor, old)
        if front.pk != target.pk
    ]
    apply_document(actor=actor, objects=objects, reason=reason)
    address.refresh_from_db()
    return address


def release_static_ip(*, actor: Actor, name: str, reason: str = "") -> StaticIP:
    """Detach the address from whatever binds it; it stays allotted. Raises Forbidden, NotFound, Invalid, Conflict."""
    actor.must_operate("static IPs")
    address = _address(actor, name)
    old = list(Listener.objects.filter(static_ip=address).select_related("load_balancer").order_by("pk"))
    if not old:
        raise Conflict(f"{name} stands before nothing.")
    objects = [
        _changed(front, {each.name for each in old if each.load_balancer_id == front.pk}, None)
        for front in _fronts(actor, old)
    ]
    apply_document(actor=actor, objects=objects, reason=reason)
    return address


def _address(actor: Actor, name: str) -> StaticIP:
    found = static_ips(actor).filter(name=name).first()
    if found is None:
        raise NotFound("There is no such static IP, or you may not see it.")
    return found


def _takers(target: LoadBalancer, old: list[Listener], wanted: str) -> list[Listener]:
    """The listeners of the target that shall have the address."""
    own = list(target.listeners.all())
    if wanted:
        found = [each for each in own if each.name == wanted]
        detail = f"Load balancer {target.name} has no listener {wanted}."
    else:
        places = {(each.protocol, each.port) for each in old}
        found = [each for each in own if (each.protocol, each.port) in places]
        found = found or [each for each in own if each.static_ip_id is None]
        detail = f"Load balancer {target.name} has no listener that could take the address; name one."
    if not found:
        raise Invalid([Fault("/listener" if wanted else "/load_balancer", "unknown", detail)])
    return found


def _fronts(actor: Actor, old: list[Listener]) -> list[LoadBalancer]:
    return list(load_balancers(actor).filter(pk__in={each.load_balancer_id for each in old}))


def _changed(front: LoadBalancer, listeners: set[str], static_ip: str | None) -> Document:
    """The load balancer's document with the address of these listeners replaced."""
    document = envelope(front)
    for each in document["spec"]["listeners"]:
        if each["name"] in listeners:
            each["static_ip"] = static_ip
    return document
