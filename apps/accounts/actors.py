"""Who acts: a person, a program with a token, or the platform itself, and for which account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Model, QuerySet

from apps.accounts.models import Account, ApiToken, Membership, User
from apps.core.errors import Forbidden

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody with a name, an account and a role in it; every selector and service takes one."""

    name: str
    account: Account
    role: str

    @property
    def is_operator(self) -> bool:
        """Whether the actor sees every account and may change the platform."""
        return self.account.is_operator

    def may_write(self) -> None:
        """Raise Forbidden for viewers."""
        if self.role == Membership.Role.VIEWER:
            raise Forbidden(
                "Your role is viewer: you may read, not change. Ask an admin of the account for the editor role."
            )

    def must_operate(self, what: str) -> None:
        """Raise Forbidden unless an operator may write; `what` is the thing that only operators change."""
        self.may_write()
        if not self.is_operator:
            raise Forbidden(f"Only operators change {what}.")

    def visible(self, rows: QuerySet[M]) -> QuerySet[M]:
        """Narrow rows that carry `account` to those that the actor may see."""
        return rows if self.is_operator else rows.filter(account=self.account)


def actor_of_user(user: User) -> Actor | None:
    """The actor that a signed-in person is, None for a person without a membership."""
    membership = user.memberships.select_related("account").order_by("id").first()
    if membership is None:
        return None
    return Actor(user.get_username(), membership.account, membership.role)


def actor_of_token(token: ApiToken) -> Actor:
    """The actor that a program with this token is."""
    return Actor(f"token {token.name}", token.account, token.role)


def platform_actor() -> Actor:
    """Spillway itself, acting for the operator account: repairs and sweeps."""
    account = Account.objects.filter(kind=Account.Kind.OPERATOR).order_by("id").first()
    if account is None:
        raise Forbidden("There is no operator account yet; run `manage.py bootstrap`.")
    return Actor("spillway", account, Membership.Role.ADMIN)
