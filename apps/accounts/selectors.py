"""SHOW, tenants: an operator sees every account, a customer its own."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account


def accounts(actor: Actor) -> QuerySet[Account]:
    """Accounts by name."""
    rows = Account.objects.order_by("name")
    return rows if actor.is_operator else rows.filter(pk=actor.account.pk)
