"""What the targets would lose of a load balancer, in groups: what is said of many objects alike is said once.

Some verdicts look at all of its routes (how large a URL map gets), so each of them is examined. Of few that is done at
once; of many a worker does it, and the page shows the report that it left, with its age. One examination serves the
operators and every account. A report that is lost is made again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache

from apps.accounts.actors import Actor
from apps.core import events
from apps.core.clock import now
from apps.core.errors import FieldError, Invalid
from apps.core.queue import enqueue
from apps.definitions import selectors
from apps.definitions.models import LoadBalancer, Route
from apps.definitions.previewing.portability import (
    TARGETS,
    Incompatibility,
    Severity,
    incompatibilities_of,
    portability_of,
)

TASK = "apps.definitions.tasks.examine_portability"
# Routes that are examined while somebody waits: about 50 ms.
AT_ONCE = 200
SHOWN = 5
MOST_GROUPS = 100
KEPT_S, AGAIN_AFTER_S = 24 * 3600.0, 60.0
OPERATORS = ""


@dataclass(frozen=True, slots=True)
class Group:
    """One verdict on `count` objects; `objects` are the first of them, as (id, what people call it)."""

    target: str
    refused: bool
    field: str
    message: str
    remedy: str
    count: int
    objects: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, refused ones first, and when; `at` is None as long as a worker has not looked.

    `routes` says that there are more than are examined at once. `left_out` counts groups that are not listed.
    """

    groups: tuple[Group, ...]
    left_out: int
    at: datetime | None
    in_background: bool


def portability_report(actor: Actor, load_balancer_id: int, target: str = "") -> Report:
    """The report of all targets or one, as far as the actor may read it. Raises NotFound, Invalid."""
    if target and target not in TARGETS:
        raise Invalid([FieldError("/target", "choice", f"Use one of {', '.join(TARGETS)}.")])
    balancer = selectors.only(selectors.load_balancers(actor), load_balancer_id)
    if Route.objects.filter(load_balancer=balancer)[: AT_ONCE + 1].count() <= AT_ONCE:
        made: tuple[list[Group], datetime | None] = grouped(portability_of(actor, load_balancer_id)), now()
        in_background = False
    else:
        made = _kept(balancer.pk, OPERATORS if actor.is_operator else actor.account.name)
        in_background = True
    found, at = made
    wanted = tuple(each for each in found if target in ("", each.target))
    return Report(wanted[:MOST_GROUPS], max(0, len(wanted) - MOST_GROUPS), at, in_background)


def grouped(found: Iterable[Incompatibility]) -> list[Group]:
    """Groups in the order in which the first of each came: by target, refused ones first."""
    groups: dict[tuple[str, bool, str, str, str], list[tuple[str, str]]] = defaultdict(list)
    for each in found:
        key = (each.target.value, each.severity is Severity.REFUSED, each.field, each.message, each.remedy)
        groups[key].append((each.object_id, each.label))
    return [Group(*key, len(objects), tuple(objects[:SHOWN])) for key, objects in groups.items()]


def examine(load_balancer_id: int) -> None:
    """Look at every route, and leave a report for the operators and for each account of which something is said."""
    balancer = LoadBalancer.objects.select_related("account").filter(pk=load_balancer_id).first()
    if balancer is None:
        return
    turn = _turn()  # before anything is read: what changes meanwhile is looked at again
    found = incompatibilities_of(balancer, Route.objects.filter(load_balancer=balancer))
    by_account: dict[str, list[Incompatibility]] = defaultdict(list)
    for each in found:
        if each.object_id.startswith(("route-", "pool-")):
            by_account[each.label.partition("/")[0]].append(each)
    reports: dict[str, list[Incompatibility]] = {**by_account, OPERATORS: list(found)}
    texts = {_key(load_balancer_id, name): [asdict(group) for group in grouped(all_)] for name, all_ in reports.items()}
    cache.set_many(texts, KEPT_S)
    cache.set(_key(load_balancer_id, "/made"), (turn, now()), KEPT_S)


def _kept(load_balancer_id: int, account: str) -> tuple[list[Group], datetime | None]:
    """What the last examination said of this account; another one is asked for where something changed since."""
    made = cache.get(_key(load_balancer_id, "/made"))
    if (made is None or made[0] != _turn()) and cache.add(_key(load_balancer_id, "/asked"), True, AGAIN_AFTER_S):
        enqueue(TASK, load_balancer_id, expires_s=AGAIN_AFTER_S)
    if made is None:
        return [], None
    return [_group(each) for each in cache.get(_key(load_balancer_id, account)) or ()], made[1]


def _group(said: Mapping[str, Any]) -> Group:
    return Group(**dict(said) | {"objects": tuple((each[0], each[1]) for each in said["objects"])})


def _key(load_balancer_id: int, name: str) -> str:
    """No account has a slash in its name."""
    return f"portability-1:{load_balancer_id}:{name}"


def _turn() -> str | None:
    return events.turns(("definitions",))
