"""DEFINE, reads: pools that an operator shares with an account by a tag; the account reads them and may route to them.

Only the operator's own pools can be shared: a tag that another customer puts on its pool shares nothing.
"""

from __future__ import annotations

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, TextField, When
from django.db.models.functions import Cast

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Grant
from apps.accounts.rights import in_force
from apps.core.errors import Forbidden
from apps.definitions.models import Pool, RoutePool


def seen_pools(actor: Actor, rows: QuerySet[Pool] | None = None) -> QuerySet[Pool]:
    """Pools that the actor may see: its own, and those that are shared with its account.

    After a grant ended, a shared pool is seen as long as a route of the account uses it. One query asks for grants.
    """
    rows = Pool.objects.all() if rows is None else rows
    if actor.is_operator:
        return rows
    grants = Grant.objects.filter(account=actor.account).exclude(tag="")
    lasting = grants.annotate(lasts=Case(When(in_force(), then=True), default=False)).order_by("lasts", "id")
    known = dict(lasting.values_list("tag", "lasts"))  # of two grants of one tag, the one in force counts
    if not known:
        return rows.filter(account=actor.account)
    used = Exists(RoutePool.objects.filter(pool=OuterRef("pk"), route__account=actor.account))
    shared = Q(pk__in=[])
    for tag, lasts in known.items():
        shared |= _carrying(tag) if lasts else _carrying(tag) & Q(used)
    return with_tags(rows).filter(Q(account=actor.account) | shared)


def usable_pools(account: Account) -> QuerySet[Pool]:
    """Pools of the operator that new routes of the account may use."""
    tags = Grant.objects.filter(in_force(), account=account).exclude(tag="").values_list("tag", flat=True)
    return tagged(list(tags))


def tagged(tags: list[str]) -> QuerySet[Pool]:
    """The operator's pools that carry any of the tags (`key=value`)."""
    wanted = Q(pk__in=[])
    for tag in tags:
        wanted |= _carrying(tag)
    return with_tags(Pool.objects.all()).filter(wanted)


def with_tags(rows: QuerySet[Pool]) -> QuerySet[Pool]:
    """The rows with their tags as text to look into: keys may be words or numbers, which JSON lookups mistake."""
    return rows.alias(tags_text=Cast("tags", TextField()))


def _carrying(tag: str) -> Q:
    key, _, value = tag.partition("=")
    return Q(account__kind=Account.Kind.OPERATOR, tags_text__contains=f'"{key}": "{value}"')


def must_own(actor: Actor, pool: Pool) -> None:
    """Raise Forbidden for a pool that the actor only sees because it is shared."""
    if not actor.is_operator and pool.account_id != actor.account.pk:
        raise Forbidden(f"Pool {pool.account.name}/{pool.name} is shared with you: route to it; its owner changes it.")
