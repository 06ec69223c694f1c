"""Tenants: who owns which hostname; the first account to claim one owns it, and nobody else until it has rested.

Public suffixes (`co.uk`, `github.io`) and wildcards over them are nobody's, except by an operator's word. A wildcard
reaches other names only once it is verified, and a name keeps wildcards of others away only once it is. A claim that
nobody verified keeps others from that very name, its routes are not served, it does not rest when it is released, and
the sweep forgets it after two weeks.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from datetime import timedelta

from django.conf import settings
from django.db.models import Q, QuerySet
from publicsuffixlist import PublicSuffixList

from apps.accounts.models import Account, Grant, Hostname
from apps.core.clock import now
from apps.core.locks import lock_words

GRACE = timedelta(days=settings.HOSTNAME_GRACE_DAYS)


class HostnameTaken(Exception):
    """The name, or a wildcard over or names under it, belong to another account; says which name, never who."""

    code = "hostname_taken"

    def __init__(self, name: str) -> None:
        super().__init__(self.sentence(name))
        self.name = name

    def sentence(self, name: str) -> str:
        """What the claimant reads."""
        return f"The hostname {name} is not available to this account."


class PublicSuffix(HostnameTaken):
    """Everybody has names below it, so it is nobody's."""

    code = "public_suffix"

    def sentence(self, name: str) -> str:
        """What the claimant reads."""
        return f"{name.removeprefix('*.')} is a public suffix, under which anybody has names; claim a name below it."


def state_of(claim: Hostname) -> str:
    """waiting (for a proof), proved or released."""
    if claim.released_at is not None:
        return "released"
    return "proved" if claim.proof else "waiting"


def lock_hostnames(names: Iterable[str]) -> None:
    """Let only one transaction at a time decide about names of the same domain (its last two labels)."""
    lock_words(f"hostname {'.'.join(name.split('.')[-2:])}" for name in names)


def claim_hostname(*, account: Account, name: str, proof: str = "") -> Hostname:
    """The claim of the account on a canonical name, made now when nobody has it; inside a transaction.

    1. Wait for others that decide about the same domain, so that a wildcard and a name under it cannot pass each other.
    2. The same name: its row says whose it is, unless it is free again; the unique constraint decides what the lock
       could not.
    3. A verified wildcard over it, or (for a wildcard) any verified name below its domain, must belong to the same
       account.
    4. It is proved by `proof` (an operator's word), by a grant, or by a wildcard over it that is.

    Raises HostnameTaken, PublicSuffix.
    """
    lock_hostnames([name])
    claim = Hostname.objects.filter(name=name).first()
    grant = _granted(account, name)
    if not proof and not grant and is_public_suffix(name):
        raise PublicSuffix(name)
    if (claim is None or claim.account_id != account.pk) and is_kept_by_others(account, name, granted=grant):
        raise HostnameTaken(name)
    if claim is None:
        claim, _ = Hostname.objects.get_or_create(name=name, defaults={"account": account})
    if claim.account_id != account.pk:
        if not _is_free(claim, by_operator=proof == Hostname.Proof.OPERATOR):
            raise HostnameTaken(name)
        claim = _handed_over(claim, account)
    if claim.released_at is not None:
        claim.released_at = None
        claim.save(update_fields=("released_at",))
    if not claim.proof:
        prove_hostname(claim, proof or (Hostname.Proof.GRANT if grant else _inherited(account, name)))
    return claim


def prove_hostname(claim: Hostname, proof: str) -> list[Hostname]:
    """Note how the claim was proved, and the unproved claims of the account under a wildcard with it.

    Returns the claims that were waiting until now; none for an empty proof. One that meets a verified claim of another
    account goes on waiting. The caller holds `lock_hostnames`.
    """
    if not proof:
        return []
    rows = Hostname.objects.filter(account=claim.account_id, proof="", released_at=None)
    waiting = Q(pk=claim.pk)
    if claim.name.startswith("*."):
        waiting |= Q(name__endswith=claim.name[1:])
    granted = proof == Hostname.Proof.GRANT
    found = [
        row
        for row in rows.filter(waiting).select_for_update(of=("self",)).select_related("account")
        if not is_kept_by_others(row.account, row.name, granted=granted)
    ]
    for row in found:
        row.proof, row.proved_at = proof, now()
        row.version += 1
        row.save(update_fields=("proof", "proved_at", "version"))
        if row.pk == claim.pk:
            claim.proof, claim.proved_at, claim.version = row.proof, row.proved_at, row.version
    return found


def _granted(account: Account, name: str) -> bool:
    grants = Grant.objects.filter(account=account, hostname__in=[name, *wildcards_over(name)])
    return grants.filter(Q(expires_at=None) | Q(expires_at__gt=now())).exists()


def _inherited(account: Account, name: str) -> str:
    """How a wildcard of the account over the name was proved: whoever rules a zone rules what is under it."""
    over = Hostname.objects.filter(account=account, name__in=wildcards_over(name), released_at=None).exclude(proof="")
    return over.values_list("proof", flat=True).first() or ""


def _is_free(claim: Hostname, *, by_operator: bool) -> bool:
    """Whether another account may have the name: it has rested, or an operator gives it away and nobody routes it."""
    rested = claim.released_at is not None and (not claim.proof or claim.released_at + GRACE <= now())
    return rested or (by_operator and not claim.routes.exists())


def _handed_over(claim: Hostname, account: Account) -> Hostname:
    """A new claim in place of the old one: nothing that the former owner knew proves anything."""
    name = claim.name
    claim.delete()
    return Hostname.objects.create(name=name, account=account)


def is_kept_by_others(account: Account, name: str, *, granted: bool = False) -> bool:
    """Whether another account verified a wildcard over the name, or (for a wildcard) a name under it."""
    others = overlapping(name).exclude(account=account).exclude(proof="")
    others = others.exclude(released_at__lte=now() - GRACE, routes__isnull=True)
    if granted:  # operators grant names of their own domains
        others = others.exclude(account__kind=Account.Kind.OPERATOR)
    return others.exists()


def is_public_suffix(name: str) -> bool:
    """Whether the name, or the domain of a wildcard, is one under which anybody may have names."""
    return bool(_suffixes().is_public(name.removeprefix("*.")))


@functools.cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()  # the list that came with the package: nothing is fetched


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


def drop_unused_claims(*, ids: Collection[int]) -> None:
    """Forget those claims that came with a route, were never proved and have no route any more; in its transaction."""
    Hostname.objects.filter(pk__in=ids, routes__isnull=True, proof="", explicit=False).delete()
