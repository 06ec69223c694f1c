"""A static IP moves from one load balancer to another in one change, or is released from the one it serves.

Whoever connects to the address is served by the one or the other, never by none: one transaction takes it from the
former listeners and gives it to the new ones, and every fleet and stack that it concerns is pushed to after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from apps.accounts.actors import Actor
from apps.compiler import grammar
from apps.core.errors import FieldError, Invalid, there
from apps.definitions import selectors
from apps.definitions.models import Listener, LoadBalancer
from apps.definitions.reading.describing import Document, describe
from apps.definitions.shapes.platform.topology import FLEET_PORTS
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.load_balancers import expect_fit
from apps.definitions.writing.objects import hold, save_partial
from apps.definitions.writing.rules.managed import check_manager
from apps.definitions.writing.transactions import change_set
from apps.fleet.models import Fleet, StaticIP

WHAT = "static IPs"
NOUN = "static-ips"


def move_static_ip(
    *,
    actor: Actor,
    name: str,
    load_balancer: object,
    listeners: object = None,
    reason: str = "",
) -> StaticIP:
    """Let listeners of the load balancer bind the address, and those that do now bind it no more.

    `listeners` are names; None means those on the ports that it serves now, and of an address that serves nothing all
    that bind no address yet. Raises NotFound, Forbidden, Managed, Invalid (pointers `/load_balancer`, `/listeners/0`).
    """
    wanted = _names(load_balancer, listeners)
    actor.may_write(NOUN)
    actor.must_operate(WHAT)
    with change_set(actor, reason=reason) as changes:
        row = _held(name)
        balancer = LoadBalancer.objects.filter(name=load_balancer).first()
        if balancer is None:
            raise Invalid([FieldError("/load_balancer", "unknown", f"There is no load balancer {load_balancer}.")])
        _attach(changes, row, _chosen(changes, row, balancer, wanted))
    return row


def release_static_ip(*, actor: Actor, name: str, reason: str = "") -> StaticIP:
    """Let no listener bind the address; it stays, with its owner and the records that follow it, free for others.

    Raises NotFound, Forbidden, Managed, Invalid where a listener could not stand without it.
    """
    actor.may_write(NOUN)
    actor.must_operate(WHAT)
    with change_set(actor, reason=reason) as changes:
        row = _held(name)
        _attach(changes, row, [])
    return row


def _names(load_balancer: object, listeners: object) -> Sequence[str] | None:
    """The names of the listeners. Raises Invalid."""
    field_errors = []
    given = listeners if isinstance(listeners, list) else []
    if listeners is not None and not given:
        field_errors.append(
            FieldError("/listeners", "not_list", "Write listeners as a list of names, or leave it out.")
        )
    for pointer, value in [("/load_balancer", load_balancer), *((f"/listeners/{at}", x) for at, x in enumerate(given))]:
        try:
            grammar.name(value)
        except grammar.GrammarError as error:
            field_errors.append(FieldError(pointer, error.code, error.message))
    if field_errors:
        raise Invalid(field_errors)
    return None if listeners is None else [str(each) for each in given]


def _held(name: str) -> StaticIP:
    """The row, which nobody else attaches before we commit. Raises NotFound."""
    return there(StaticIP.objects.select_for_update(of=("self",)).select_related("stack").filter(name=name).first())


def _chosen(changes: ChangeSet, row: StaticIP, balancer: LoadBalancer, names: Sequence[str] | None) -> list[Listener]:
    """The listeners that shall bind the address, one for each port. Raises Invalid."""
    own = list(balancer.listeners.select_related("load_balancer__account").order_by("name"))
    if names is None:
        ports = set(row.listeners.values_list("port", flat=True))
        found = [each for each in own if (each.port in ports if ports else each.static_ip_id is None)]
    else:
        found = [each for each in own if each.name in names]
        for at, name in enumerate(names):
            if name not in {each.name for each in own}:
                changes.add_error(
                    f"/listeners/{at}", "unknown", f"Load balancer {balancer.name} has no listener {name}."
                )
    if not found and not changes.field_errors:
        detail = (
            f"Name the listeners of {balancer.name} that should bind it; none of them uses a port that it serves now."
        )
        changes.add_error("/listeners", "missing", detail)
    if len({each.port for each in found}) < len(found):
        detail = "Two of these listeners use the same port; an address can serve each port only once."
        changes.add_error("/listeners", "twice", detail)
    fleets, stacks = list(balancer.fleets.all()), list(balancer.stacks.all())
    expect_fit(changes, row, fleets, stacks, "/load_balancer")
    changes.field_errors.raise_any()
    return found


def _attach(changes: ChangeSet, row: StaticIP, chosen: list[Listener]) -> None:
    """Take the address from the listeners that bind it and give it to the chosen ones; record what changed."""
    former = list(row.listeners.select_related("load_balancer__account").order_by("name"))
    if [each.pk for each in former] == [each.pk for each in sorted(chosen, key=lambda each: each.name)]:
        return
    balancers = {each.load_balancer_id: each.load_balancer for each in (*former, *chosen)}
    for balancer in balancers.values():
        check_manager(changes, hold(changes, balancer))
        changes.mark_affected(balancer)
    before = {pk: _document(changes, pk) for pk in balancers}
    Listener.objects.filter(static_ip=row).update(static_ip=None)
    Listener.objects.filter(pk__in=[each.pk for each in chosen]).update(static_ip=row)
    _reject_taken_ports(changes, [each for each in former if each.pk not in {one.pk for one in chosen}])
    changes.mark_affected(row)
    action = "move" if chosen else "release"
    # Whom the address serves is said by the load balancers, so their managers count.
    save_partial(changes, row, partial(_both, _served(former), _served(chosen)), action=action, managed=False)
    for pk, balancer in sorted(balancers.items()):
        save_partial(changes, balancer, partial(_both, before[pk], _document(changes, pk)))


def _both(before: Document, after: Document) -> tuple[Document, Document]:
    return before, after


def _document(changes: ChangeSet, balancer: int) -> Document:
    return describe(selectors.load_balancers(changes.actor).get(pk=balancer))


def _reject_taken_ports(changes: ChangeSet, left: list[Listener]) -> None:
    """Invalid where a listener that binds the nodes' own addresses from now on would meet another one there."""
    for listener in left:
        fleets = list(Fleet.objects.filter(load_balancers=listener.load_balancer_id))
        own = Listener.objects.filter(load_balancer__fleets__in=fleets, static_ip=None, port=listener.port)
        other = own.exclude(pk=listener.pk).select_related("load_balancer").first()
        used = other is not None or listener.port in {getattr(each, name) for each in fleets for name in FLEET_PORTS}
        if fleets and used:
            by = f"listener {other.name} of {other.load_balancer.name}" if other else "the nodes internally"
            whose = f"Listener {listener.name} of {listener.load_balancer.name}"
            detail = (
                f"{whose} would bind port {listener.port} of the nodes, which {by} uses; delete it, or change its port."
            )
            changes.add_error("", "port_in_use", detail)
    changes.field_errors.raise_any()


def _served(listeners: list[Listener]) -> Document:
    balancer = listeners[0].load_balancer.name if listeners else None
    return {"load_balancer": balancer, "listeners": sorted(each.name for each in listeners)}
