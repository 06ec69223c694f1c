"""Inside a write: what a kind of object says of itself, so that saving and deleting ask no row what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.reading.describing import Document
from apps.definitions.reading.documents import Object
from apps.definitions.writing.change_set import ChangeSet

_REFERENCES = ("pool", "default_pool", "mirror", "zone")
_LISTS = ("certificates", "policies")


def as_sent(_changes: ChangeSet, _row: Any, wanted: Object) -> Object:
    """All of it is the sender's to say."""
    return wanted


def own_names(after: Document, owner: Account) -> Document:
    """References to the owner's own objects without its name in front, as `describe` writes them."""
    prefix = f"{owner.name}/"

    def own(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: entry(key, each) for key, each in value.items()}
        return [own(each) for each in value] if isinstance(value, list) else value

    def entry(key: str, value: Any) -> Any:
        if key in _REFERENCES and isinstance(value, str):
            return value.removeprefix(prefix)
        names = key in _LISTS and isinstance(value, list)  # quotas have a number under the same word
        return [name.removeprefix(prefix) for name in value] if names else own(value)

    found: Document = own(after)
    return found


def as_compared(_changes: ChangeSet, _row: Any, _before: Document | None, after: Document) -> Document:
    """What was stored is what was compared."""
    return after


def of_owner(_row: Any, owner: Account) -> Account:
    """The audit log of whoever owns the object."""
    return owner


def always(_changes: ChangeSet, _row: Any) -> None:
    """Nothing of its own keeps the object or goes with it."""


def never(_row: Any, _spec: Any) -> bool:
    """Everything that differs can be seen in the documents."""
    return False


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of object is found and stored; `noun` is its word in URLs and scopes.

    `platform` kinds have names that are unique everywhere; they and those `for_operators` are changed by operators.
    `wanted` keeps what the sender does not own, `comparable` writes a document as `describe` does, `after_save` answers
    what was really stored, `before_delete` raises what keeps a row that nobody uses, `brings_secrets` sees
    changes that no document shows, and `audit_account` says in whose record the change stands.
    """

    model: type[Any]
    rows: Callable[[Actor], QuerySet[Any]]
    store: Callable[[ChangeSet, Account, Any, Any], None]
    noun: str
    platform: bool = False
    for_operators: bool = False
    wanted: Callable[[ChangeSet, Any, Object], Object] = as_sent
    comparable: Callable[[Document, Account], Document] = own_names
    after_save: Callable[[ChangeSet, Any, Document | None, Document], Document] = as_compared
    before_delete: Callable[[ChangeSet, Any], None] = always
    brings_secrets: Callable[[Any, Any], bool] = never
    audit_account: Callable[[Any, Account], Account] = of_owner

    def may_change(self, actor: Actor) -> None:
        """Raise Forbidden unless the actor may change objects of this kind at all."""
        actor.may_write(self.noun)
        if self.platform or self.for_operators:
            actor.must_operate(self.noun.replace("-", " ").replace("ips", "IPs"))

    def owner(self, changes: ChangeSet, account: str | None) -> Account:
        """Whose the object is. Raises Invalid for an account that is not the actor's to name."""
        return changes.actor.account if self.platform else changes.account(account)

    def account_name(self, owner: Account) -> str:
        """The account in an object's identity; empty where names are unique everywhere."""
        return "" if self.platform else owner.name

    def label(self, owner: Account, name: str) -> str:
        """What people call it."""
        return name if self.platform else f"{owner.name}/{name}"

    def key(self, owner: Account | None, name: str) -> tuple[Any, ...]:
        """What the row is looked up by, once in a transaction."""
        return "row", self.model.__name__, None if self.platform or owner is None else owner.pk, name
