"""An operator sees those of every account, a customer its own."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.selectors import only
from apps.webhooks.models import Attempt, Delivery, Webhook


def webhooks(actor: Actor) -> QuerySet[Webhook]:
    """Endpoints by account and name, without their secrets."""
    rows = Webhook.objects.select_related("account").defer("secret", "previous_secret")
    return actor.visible(rows).order_by("account__name", "name")


def webhook(actor: Actor, pk: int) -> Webhook:
    """One endpoint. Raises NotFound."""
    return only(webhooks(actor), pk)


def deliveries(row: Webhook) -> QuerySet[Delivery]:
    """What was sent to an endpoint that the actor may see, newest first, with its attempts."""
    attempts = Prefetch("attempts", Attempt.objects.order_by("id"))
    rows = Delivery.objects.filter(webhook=row).select_related("entry").defer("entry__before", "entry__after")
    return rows.prefetch_related(attempts).order_by("-id")


def delivery(actor: Actor, webhook_id: int, pk: int) -> Delivery:
    """One delivery of one endpoint. Raises NotFound."""
    return only(deliveries(webhook(actor, webhook_id)), pk)
