"""Who acts: a person, a program with a token, or the platform itself, and for which account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from apps.accounts import roles
from apps.accounts.models import Account, ApiToken, Membership, User
from apps.core.errors import Forbidden

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody with a name, an account and a role in it; every selector and service takes one.

    `scopes` narrow the role (`routes:write`, `*:read`), None narrows nothing; `token` is the key id of a program's
    token, `user_id` the row of a person; `impersonating` says that an operator sees the account as its viewer.
    """

    name: str
    account: Account
    role: str
    scopes: frozenset[str] | None = None
    token: str = ""
    user_id: int | None = None
    impersonating: bool = False

    @property
    def is_operator(self) -> bool:
        """Whether the actor sees every account and may change the platform."""
        return self.account.is_operator

    @property
    def role_word(self) -> str:
        """The role as people of this kind of account say it."""
        return roles.word_of(self.account.kind, self.role)

    def may_write(self, noun: str = "") -> None:
        """Raise Forbidden for viewers, and for a token whose scopes leave `noun` (`routes`, `pools`, …) out."""
        if self.role == Membership.Role.VIEWER:
            raise Forbidden("Your role is viewer, which is read-only. Ask an admin of the account for the editor role.")
        if noun and not self.has_scope(noun, "write"):
            raise Forbidden(f"This token does not have the scope {noun}:write; create a token with this scope.")

    def must_be_active(self) -> None:
        """Raise Forbidden while the account is suspended; an operator may still impersonate its viewer."""
        if self.account.suspended and not self.impersonating:
            raise Forbidden(
                "This account is suspended: its traffic is not affected, but the console "
                "and changes are blocked. Ask an operator."
            )

    def has_scope(self, noun: str, verb: str) -> bool:
        """Whether the scopes let the actor `read` or `write` the noun; writing something includes reading it."""
        if self.scopes is None:
            return True
        allowed = {f"{noun}:{verb}", f"*:{verb}"}
        if verb == "read":
            allowed |= {f"{noun}:write", "*:write"}
        return bool(allowed & self.scopes)

    @property
    def may_write_anything(self) -> bool:
        """Whether some scope of the actor writes at all."""
        return self.scopes is None or any(scope.endswith(":write") for scope in self.scopes)

    def must_administer(self, what: str) -> None:
        """Raise Forbidden unless the actor is admin (owner) of the account; `what` is what only they manage."""
        self.may_write()
        if self.role != Membership.Role.ADMIN:
            raise Forbidden(f"Only {roles.word_of(self.account.kind, Membership.Role.ADMIN)}s can manage {what}.")

    def must_manage(self, account: Account, what: str, noun: str) -> None:
        """Raise Forbidden unless the actor may change `what` (tokens, people) of the account, and has the scope.

        Admins (owners) do so in their own account; in a customer's account operators do it as well.
        """
        self.may_write(noun)
        if account.pk == self.account.pk:
            self.must_administer(what)
        else:
            self.must_operate(f"{what} of other accounts")

    def must_operate(self, what: str) -> None:
        """Raise Forbidden unless an operator may write; `what` is the thing that only operators change."""
        self.may_write()
        if not self.is_operator:
            raise Forbidden(f"Only operators can change {what}.")

    def owns(self, row: Any) -> bool:
        """Whether a row that carries `account` is the actor's business, and not only shared; an operator's all are."""
        return self.is_operator or row.account_id == self.account.pk

    def visible(self, rows: QuerySet[M]) -> QuerySet[M]:
        """Narrow rows that carry `account` to those that the actor may see."""
        return rows if self.is_operator else rows.filter(account=self.account)


def memberships_of(user: User) -> list[Membership]:
    """Every account of a person with the role in it, the oldest membership first."""
    return list(user.memberships.select_related("account").order_by("id"))


def actor_of_user(user: User) -> Actor | None:
    """The actor that a person is in their first account; None without any."""
    return actor_among(user, memberships_of(user), None)


def actor_among(user: User, memberships: Sequence[Membership], account_id: int | None) -> Actor | None:
    """The actor that a signed-in person is in the account that they chose, else in their first; None without any."""
    chosen = next((each for each in memberships if each.account_id == account_id), None)
    membership = chosen or next(iter(memberships), None)
    if membership is None:
        return None
    return Actor(user.get_username(), membership.account, membership.role, user_id=user.pk)


def impersonator_of(operator: Actor, account: Account) -> Actor:
    """An operator who impersonates a viewer of the account: reads what its people read, changes nothing."""
    name = f"{operator.name} ({operator.account.name}) as {account.name}"
    return Actor(name, account, Membership.Role.VIEWER, user_id=operator.user_id, impersonating=True)


def actor_of_token(token: ApiToken) -> Actor:
    """The actor that a program with this token is."""
    scopes = frozenset(token.scopes) if token.scopes else None
    return Actor(f"token {token.name}", token.account, token.role, scopes=scopes, token=token.key_id)


def platform_actor() -> Actor:
    """Spillway itself, acting for the operator account: repairs and sweeps."""
    account = Account.objects.filter(kind=Account.Kind.OPERATOR).order_by("id").first()
    if account is None:
        raise Forbidden("There is no operator account yet; run `manage.py bootstrap`.")
    return Actor("spillway", account, Membership.Role.ADMIN)
