"""Reads what was sent, value by value; each wrong one becomes an error that names its field."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator

from apps.accounts import roles
from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.accounts.scopes import SCOPES
from apps.compiler import grammar
from apps.compiler.address_spelling import spelled
from apps.core.errors import FieldError, Invalid, Stale

MOST_NETWORKS = 50
_email = EmailValidator("Write an e-mail address such as ann@example.com.")


def account_named(actor: Actor, name: object) -> Account:
    """The account that the change is for, None for the actor's own; only operators name another. Raises Invalid."""
    own = actor.account
    if name is None or name == own.name:
        return own
    if not actor.is_operator:
        raise Invalid([FieldError("/account", "account", f"Leave the account out: you act for {own.name}.")])
    plain = isinstance(name, str) and name.isascii() and name.isprintable()
    found = Account.objects.filter(name=name).first() if plain else None
    if found is None:
        raise Invalid([FieldError("/account", "unknown", "There is no such account.")])
    return found


def role_named(account: Account, word: object, field_errors: list[FieldError]) -> Membership.Role:
    """The role that a word means in this account."""
    found = roles.role_of(account.kind, word) if isinstance(word, str) else None
    if found is None:
        known = ", ".join(roles.WORDS[Account.Kind(account.kind)].values())
        field_errors.append(FieldError("/role", "choice", f"Use one of {known}."))
    return found or Membership.Role.VIEWER


def not_above_own_scopes(actor: Actor, role: Membership.Role, field_errors: list[FieldError]) -> None:
    """A person has no scopes: a token that is narrowed gives people no role that writes more than it may itself."""
    if actor.scopes is not None and "*:write" not in actor.scopes and role != Membership.Role.VIEWER:
        detail = (
            "This token is limited by scopes, so it can only add viewers. Use a token with *:write, or the console."
        )
        field_errors.append(FieldError("/role", "more_than_own", detail))


def name(value: object, field_errors: list[FieldError]) -> str:
    """Lowercase letters, digits and hyphens."""
    try:
        return grammar.name(value)
    except grammar.GrammarError as error:
        field_errors.append(FieldError("/name", error.code, error.message))
        return ""


def only_known(sent: Mapping[Any, Any], known: Collection[str], pointer: str, field_errors: list[FieldError]) -> None:
    """Nothing but the fields that there are: a wrong name is no value that is left out."""
    for field in sorted(map(str, set(sent) - set(known))):
        detail = f"There is no such field here; known are {', '.join(known)}."
        field_errors.append(FieldError(f"{pointer}/{field[:63]}", "unknown_field", detail))


def email(value: object, field_errors: list[FieldError]) -> str:
    """An address in ASCII, with its domain in lower case."""
    try:
        if not isinstance(value, str) or not value.isascii() or len(value) > 254:
            raise ValidationError("Write an e-mail address of at most 254 plain characters.")
        _email(value)
    except ValidationError as error:
        field_errors.append(FieldError("/email", "email", str(error.messages[0])))
        return ""
    person, _, domain = value.rpartition("@")
    return f"{person}@{domain.lower()}"


def scopes(values: object, field_errors: list[FieldError]) -> tuple[str, ...]:
    """Words of scopes.py, each once."""
    found = []
    for index, value in enumerate(_list("scopes", values, len(SCOPES), field_errors)):
        if value in SCOPES:
            found.append(str(value))
        else:
            detail = "Use a noun of the API or *, a colon, and read or write: routes:write, *:read."
            field_errors.append(FieldError(f"/scopes/{index}", "choice", detail))
    return tuple(dict.fromkeys(found))


def networks(values: object, field_errors: list[FieldError]) -> tuple[str, ...]:
    """Networks (CIDR) or single addresses, in their usual form."""
    found = []
    for index, value in enumerate(_list("networks", values, MOST_NETWORKS, field_errors)):
        try:
            if not isinstance(value, str):
                raise TypeError
            found.append(spelled(ipaddress.ip_network(value)))
        except (TypeError, ValueError):
            detail = "Write a network such as 192.0.2.0/24 or 2001:db8::/48, with no bit set behind its length."
            field_errors.append(FieldError(f"/networks/{index}", "network", detail))
    return tuple(dict.fromkeys(found))


def _list(field: str, values: object, most: int, field_errors: list[FieldError]) -> list[Any]:
    if values is None:
        return []
    if not isinstance(values, list | tuple) or len(values) > most:
        field_errors.append(FieldError(f"/{field}", "list", f"Write {field} as a list of at most {most} entries."))
        return []
    return list(values)


def check_version(version: int, expected: int | None, what: str = "This") -> None:
    """Raise Stale unless nobody expected another version."""
    if expected is not None and version != expected:
        raise Stale(f"{what} has changed since you read it; read it again before you change it.")
