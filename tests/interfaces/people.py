"""People in browsers, for tests of pages."""

from __future__ import annotations

from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Membership, User


def client_of(actor: Actor, role: str = Membership.Role.ADMIN) -> Client:
    """A browser in which somebody of the actor's account is signed in."""
    user, _ = User.objects.get_or_create(username=f"{role}-of-{actor.account.name}")
    Membership.objects.get_or_create(user=user, account=actor.account, defaults={"role": role})
    client = Client()
    client.force_login(user)
    return client
