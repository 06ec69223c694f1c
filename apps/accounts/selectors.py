"""An operator sees every account, a customer its own."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.errors import NotFound, there

M = TypeVar("M", bound=Model)


def accounts(actor: Actor) -> QuerySet[Account]:
    """Accounts by name."""
    rows = Account.objects.order_by("name")
    return rows if actor.is_operator else rows.filter(pk=actor.account.pk)


def account_named(actor: Actor, name: str) -> Account:
    """One account by name. Raises NotFound, alike for foreign and missing ones."""
    found = accounts(actor).filter(name=name).first() if name.isascii() and name.isprintable() else None
    if found is None:
        raise NotFound("There is no such account, or you may not see it.")
    return found


def only(rows: QuerySet[M], pk: int) -> M:
    """The row with this id among those that the actor may see. Raises NotFound, alike for foreign and missing ones."""
    return there(rows.filter(pk=pk).first() if 0 < pk < 2**63 else None)
