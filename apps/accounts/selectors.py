"""An operator sees every account, a customer its own."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.errors import NotFound


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
