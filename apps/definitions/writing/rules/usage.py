"""Who uses an object, for its page and before it is deleted: by foreign keys, by lists of objects, and by name.

Foreign keys are not written down here: a row that protects what it points to uses it, and a row without a name of its
own is a part of the row with which it is deleted. What names others in a text or in JSON is below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from django.db.models import (
    CASCADE,
    PROTECT,
    Count,
    Expression,
    ForeignKey,
    ManyToManyField,
    Model,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.functions import Cast, Coalesce

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname
from apps.definitions.affected_targets import users_of_list
from apps.definitions.models import (
    CapacityTest,
    Certificate,
    Listener,
    LoadBalancer,
    NetworkList,
    Policy,
    Pool,
    Record,
    Route,
    Schedule,
    Zone,
)
from apps.definitions.writing.kinds.schedules import owed_by
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Node, Region, Stack, StaticIP

SHOWN = 5
# Kinds that use others, in the order in which they are named.
USERS: tuple[type[Model], ...] = (
    *(Route, Listener, LoadBalancer, Policy, Fleet, Node, StaticIP),
    *(Stack, AddressPool, Zone, Record, Pool, CapacityTest, Schedule),
)
# Objects of these kinds may be used by others.
USED: tuple[type[Model], ...] = (
    *(Region, Fleet, CloudAccount, Stack, AddressPool, StaticIP, Certificate, Pool, LoadBalancer, NetworkList),
    *(Policy, Zone, CapacityTest, Hostname),
)
# A policy says for which load balancers it is the default: it holds for them, and they can go.
_NO_USE = {(Policy, "load_balancers")}
_ALONGSIDE: dict[type[Model], tuple[str, ...]] = {
    Route: ("account", "hostname"),
    Listener: ("account", "load_balancer"),
    Record: ("account", "zone"),
}


@dataclass(frozen=True, slots=True)
class Use:
    """Objects of one kind that use another one, whoever owns them; `word` says the kind, and how it is not plain."""

    word: str
    rows: QuerySet[Any]


def users_of(actor: Actor, row: Any) -> list[str]:
    """Up to five users by kind and name, then how many more; what the actor may not see is only counted."""
    named = list(_SAID[type(row)](row)) if type(row) in _SAID else []
    uses = uses_of(row)
    every, seen = counts(*(use.rows for use in uses)), counts(*(actor.visible(use.rows) for use in uses))
    count = len(named) + sum(every)
    for use in (use for use, number in zip(uses, seen, strict=True) if number):
        named += [f"{use.word} {name_of(each)}" for each in actor.visible(use.rows)[: SHOWN - len(named)]]
    return [*named, f"{count - len(named)} more"] if count > len(named) else named


def counts(*sets: QuerySet[Any]) -> list[int]:
    """How many rows each of the querysets has, in one query."""
    return list(Account.objects.order_by().values_list(*map(_count, sets))[0]) if sets else []


def _count(rows: QuerySet[Any]) -> Expression:
    numbers = rows.order_by().annotate(one=Value(1)).values("one").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(numbers), 0)


def uses_of(row: Any) -> list[Use]:
    """What uses the row, kind by kind, in the order of names."""
    found: dict[type[Model], Q] = {}
    for user, condition in (*_by_keys(row), *_by_name(row)):
        found[user] = found.get(user, Q()) | condition
    uses = [Use(str(user._meta.verbose_name), _rows(user, found[user])) for user in USERS if user in found]
    return uses + [Use(word, _rows(user, condition)) for word, user, condition in _otherwise(row)]


def name_of(user: Any) -> str:
    """A user by its name, which is unique with that of its kind."""
    return f"{user.name} of {user.load_balancer.name}" if isinstance(user, Listener) else str(user.name)


def _rows(user: type[Model], condition: Q) -> QuerySet[Any]:
    rows: QuerySet[Any] = user._default_manager.filter(condition).order_by("name", "pk")
    return rows.select_related(*_ALONGSIDE.get(user, ("account",)))


@cache
def _paths(used: type[Model]) -> list[tuple[type[Model], list[Any]]]:
    """Kinds that use objects of a kind, with the fields that lead there: the last one is of the user itself."""
    found = []
    for relation in used._meta.related_objects:
        field: Any = relation.field
        user: Any = relation.related_model
        protects = isinstance(field, ForeignKey) and field.remote_field.on_delete is PROTECT
        if not (protects or isinstance(field, ManyToManyField)) or (user, field.name) in _NO_USE:
            continue
        fields = [field]
        while user not in USERS:
            field = next(each for each in user._meta.fields if each.is_relation and _belongs(each))
            user = field.related_model
            fields.append(field)
        found.append((user, fields))
    return found


def _belongs(field: Any) -> bool:
    return field.remote_field.on_delete is CASCADE


def _by_keys(row: Model) -> Iterator[tuple[type[Model], Q]]:
    """By foreign keys and by lists of objects; each part stands for what it belongs to."""
    for user, fields in _paths(type(row)) if isinstance(row, USED) else ():
        condition = Q(**{fields[0].name: row})
        for part, belongs in pairwise(fields):
            condition = Q(pk__in=part.model._default_manager.filter(condition).values(belongs.name))
        if isinstance(fields[0], ManyToManyField):  # a join would not go together with other conditions
            condition = Q(pk__in=user._default_manager.filter(condition).order_by().values("pk"))
        yield user, condition


def _by_name(row: Any) -> Iterator[tuple[type[Model], Q]]:
    """By the name in a text or in JSON."""
    match row:
        case Fleet():
            yield Schedule, Q(target_kind="rollout", target__fleet=row.name)
        case CapacityTest():
            yield Schedule, Q(target_kind="capacity_test", target__name=row.name, account=row.account_id)
        case NetworkList():
            users = users_of_list(row)
            yield Policy, Q(pk__in=[each.pk for each in users.policies])
            yield Route, Q(pk__in=[each.pk for each in users.routes])
            yield LoadBalancer, Q(pk__in=[each.load_balancer_id for each in users.listeners])
        case Region():
            yield Stack, Q(pk__in=_holding(Stack, "network", f'"{row.name}": "').values("pk"))
            for user in (Policy, Route):
                rows = _holding(user, "rules", f'"{row.name}"').values_list("pk", "rules")
                yield user, Q(pk__in=[pk for pk, rules in rows if _orders(rules, row.name)])


def _otherwise(row: Any) -> Iterator[tuple[str, type[Model], Q]]:
    """What one and the same object may do besides, in other words."""
    if isinstance(row, Region):
        ordered = _holding(Pool, "overflow_order", f'"{row.name}"')
        yield "overflow order of pool", Pool, Q(pk__in=ordered.values("pk"))


def _holding(model: type[Model], field: str, text: str) -> QuerySet[Any]:
    """Rows of which a JSON column has the text in it."""
    rows = model._default_manager.filter(**{f"{field}__isnull": False}).annotate(text=Cast(field, TextField()))
    found: QuerySet[Any] = rows.filter(text__contains=text).order_by()
    return found


def _orders(rules: dict[str, Any] | None, region: str) -> bool:
    return region in (((rules or {}).get("overflow") or {}).get("order") or ())


def _owed(row: Schedule) -> Iterator[str]:
    """A change that it made and has still to take back."""
    if owed := owed_by(row):
        yield f"a change that it restores at {owed:%Y-%m-%d %H:%M:%S} UTC"


def _own_history(_row: Account) -> Iterator[str]:
    """It stays, so its account stays; and nobody else could own its objects."""
    yield "its own history in the audit log, which stays: suspend it instead"


# What keeps an object without being an object.
_SAID: dict[type[Any], Callable[[Any], Iterator[str]]] = {
    Account: _own_history,
    Schedule: _owed,
}
