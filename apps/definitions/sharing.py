"""Pools and zones that an operator shares with an account by a tag.

The account reads a shared pool and may route to it; it keeps records of its own in a shared zone. Only the operator's
own objects can be shared: a tag that another customer puts on its pool shares nothing.

A grant that ended takes nothing from routes that are there. One that was deleted, or lost its tag, took the pool back:
routes to it get nothing more from it until it is shared again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from django.db.models import Exists, F, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat, Replace, StrIndex

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Grant
from apps.accounts.rights import in_force
from apps.core.concurrency.locks import lock_words
from apps.core.errors import Forbidden
from apps.core.requests import asked_once
from apps.definitions.models import Pool, Record, RoutePool, Zone

Shared = TypeVar("Shared", Pool, Zone)
# `customer=acme` as the text of a JSON object has it; JSON lookups would mistake keys such as `0` and `contains`.
_TAG_AS_JSON = Concat(Value('"'), Replace(F("tag"), Value("="), Value('": "')), Value('"'))
_OPERATORS = Q(account__kind=Account.Kind.OPERATOR)


def seen_pools(actor: Actor, rows: QuerySet[Pool] | None = None) -> QuerySet[Pool]:
    """Pools that the actor may see: its own, and those that are shared with its account.

    After a grant ended, a shared pool is seen as long as a route of the account uses it.
    """
    used = Exists(RoutePool.objects.filter(pool=OuterRef("pk"), route__account=actor.account))
    return _seen(actor, Pool.objects.all() if rows is None else rows, used)


def seen_zones(actor: Actor, rows: QuerySet[Zone] | None = None) -> QuerySet[Zone]:
    """Zones that the actor may see; one whose grant ended, as long as the account has records in it."""
    used = Exists(Record.objects.filter(zone=OuterRef("pk"), account=actor.account))
    return _seen(actor, Zone.objects.all() if rows is None else rows, used)


def _seen(actor: Actor, rows: QuerySet[Shared], used: Exists) -> QuerySet[Shared]:
    if actor.is_operator:
        return rows
    own = Grant.objects.filter(account=actor.account)
    if not asked_once(("is shared anything", actor.account.pk), own.exclude(tag="").exists):
        return rows.filter(account=actor.account)
    granted = _naming(own)
    shared = _OPERATORS & (Q(Exists(granted.filter(in_force()))) | (Q(used) & Q(Exists(granted))))
    return with_tags(rows).filter(Q(account=actor.account) | shared)


def usable_pools(account: Account) -> QuerySet[Pool]:
    """Pools of the operator that new routes of the account may use."""
    return _usable(Pool.objects.all(), account)


def usable_zones(account: Account) -> QuerySet[Zone]:
    """Zones of the operator in which the account may make records."""
    return _usable(Zone.objects.all(), account)


def _usable(rows: QuerySet[Shared], account: Account) -> QuerySet[Shared]:
    return with_tags(rows.filter(_OPERATORS)).filter(Exists(grants_by_tag(account).filter(in_force())))


def taken_back(uses: QuerySet[RoutePool]) -> QuerySet[RoutePool]:
    """Of these uses those by customers' routes of an operator's pool that no grant, present or ended, shares."""
    granted = _naming(Grant.objects.filter(account=OuterRef("route__account")))
    shared = uses.filter(pool__account__kind=Account.Kind.OPERATOR, route__account__kind=Account.Kind.CUSTOMER)
    return shared.alias(tags_text=Cast("pool__tags", TextField())).exclude(Exists(granted))


def lock_shared(accounts: Iterable[str]) -> None:
    """Hold what is shared with these accounts (names) until commit: nobody begins or ends a use of it meanwhile."""
    lock_words(f"shared with {name}" for name in accounts)


def tagged(tag: str) -> QuerySet[Pool]:
    """The operator's pools that carry the tag (`key=value`)."""
    return _tagged(Pool.objects.all(), tag)


def tagged_zones(tag: str) -> QuerySet[Zone]:
    """The operator's zones that carry the tag."""
    return _tagged(Zone.objects.all(), tag)


def _tagged(rows: QuerySet[Shared], tag: str) -> QuerySet[Shared]:
    key, _, value = tag.partition("=")
    return with_tags(rows.filter(_OPERATORS)).filter(Q(tags_text__contains=f'"{key}": "{value}"'))


def grants_by_tag(account: Account) -> QuerySet[Grant]:
    """For `Exists` over `with_tags`: grants of a tag that the row carries, those that ended as well."""
    return _naming(Grant.objects.filter(account=account))


def _naming(grants: QuerySet[Grant]) -> QuerySet[Grant]:
    """Those whose tag the outer row carries, in `tags_text`."""
    found = grants.exclude(tag="")
    return found.alias(position=StrIndex(OuterRef("tags_text"), _TAG_AS_JSON)).filter(position__gt=0)


def with_tags(rows: QuerySet[Shared]) -> QuerySet[Shared]:
    """The rows with their tags as text to look into."""
    return rows.alias(tags_text=Cast("tags", TextField()))


def must_own(actor: Actor, pool: Pool) -> None:
    """Raise Forbidden for a pool that the actor only sees because it is shared."""
    if not actor.owns(pool):
        raise Forbidden(f"Pool {pool.account.name}/{pool.name} is shared with you: route to it; its owner changes it.")
