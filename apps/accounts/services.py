"""Writes on tenants: who owns which hostname; the first account to use one owns it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Q, QuerySet

from apps.accounts.models import Account, Hostname
from apps.core.locks import lock_words


class HostnameTaken(Exception):
    """The name, or a wildcard over or names under it, belong to another account; says which name, never who."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The hostname {name} is not available to this account.")
        self.name = name


def lock_hostnames(names: Iterable[str]) -> None:
    """Let only one transaction at a time decide about names of the same domain (its last two labels)."""
    lock_words(f"hostname {'.'.join(name.split('.')[-2:])}" for name in names)


def claim_hostname(*, account: Account, name: str) -> Hostname:
    """The claim of the account on a canonical name, made now when nobody has it; inside a transaction.

    1. Wait for others that decide about the same domain, so that a wildcard and a name under it cannot pass each other.
    2. The same name: its row says whose it is; the unique constraint decides what the lock could not.
    3. A wildcard over it, or (for a wildcard) any name below its domain, must belong to the same account.

    Raises HostnameTaken.
    """
    lock_hostnames([name])
    claim = Hostname.objects.filter(name=name).first()
    if claim is None:
        _refuse_overlap(account, name)
        claim, _ = Hostname.objects.get_or_create(name=name, defaults={"account": account})
    if claim.account_id != account.pk:
        raise HostnameTaken(name)
    return claim


def _refuse_overlap(account: Account, name: str) -> None:
    if overlapping(name).exclude(account=account).exists():
        raise HostnameTaken(name)


def wildcards_over(name: str) -> list[str]:
    """Every wildcard whose domain holds the name: `a.b.c.example` → `*.b.c.example`, `*.c.example`."""
    labels = name.removeprefix("*.").split(".")
    return [f"*.{'.'.join(labels[start:])}" for start in range(1, len(labels) - 1)]


def overlapping(name: str) -> QuerySet[Hostname]:
    """Claims of other names that a wildcard joins with this one."""
    wanted = Q(name__in=wildcards_over(name))
    if name.startswith("*."):
        wanted |= Q(name__endswith=name[1:])
    return Hostname.objects.filter(wanted).exclude(name=name)


def release_unused_hostnames(*, ids: Collection[int]) -> None:
    """Give up those claims that no route uses any more; inside the transaction that took the routes away."""
    Hostname.objects.filter(pk__in=ids, routes__isnull=True).delete()
