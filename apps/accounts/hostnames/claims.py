"""Who owns which hostname: the first account to verify it, until it is released and its cooldown is over.

Any account may claim any name, and learns nothing of other claims by that. An unverified claim keeps nobody out, its
routes are not served, it has no cooldown when it is released, and the sweep forgets it after two weeks. Public
suffixes (`co.uk`, `github.io`) and wildcards over them are nobody's, except by an operator's word.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import Q, QuerySet
from publicsuffixlist import PublicSuffixList

from apps.accounts.models import Account, Grant, Hostname
from apps.compiler.matching.hosts import ANY, domain_of, ending_of, is_wildcard
from apps.core.clock import now
from apps.core.concurrency.locks import lock_words

# Names in one question.
AT_ONCE = 500
COOLDOWN = timedelta(days=settings.HOSTNAME_COOLDOWN_DAYS)


class HostnameTaken(Exception):
    """Another account verified the name, or what a wildcard joins with it; said to operators alone."""

    code = "hostname_taken"

    def __init__(self, name: str) -> None:
        super().__init__(self.sentence(name))
        self.name = name

    def sentence(self, name: str) -> str:
        """What the claimant reads."""
        return f"Another account has verified {name}, a wildcard that covers it, or a name below it."


class PublicSuffix(HostnameTaken):
    """Everybody has names below it, so it is nobody's."""

    code = "public_suffix"

    def sentence(self, name: str) -> str:
        """What the claimant reads."""
        return f"{domain_of(name)} is a public suffix that many owners share; claim a name below it."


def state_of(claim: Hostname) -> str:
    """waiting (for verification), verified or released."""
    if claim.released_at is not None:
        return "released"
    return "verified" if claim.verification else "waiting"


def lock_hostnames(names: Iterable[str]) -> None:
    """Let only one transaction at a time decide about names of the same domain (its last two labels)."""
    lock_words(f"hostname {'.'.join(name.split('.')[-2:])}" for name in names)


class Claimed(NamedTuple):
    """A claim, whether it was made just now, and whether it was there and waited for its verification."""

    row: Hostname
    made: bool
    waited: bool


def claim_hostname(*, account: Account, name: str, verification: str = "") -> Hostname:
    """The claim of the account on a canonical name, as `claim_or_find` makes it."""
    return claim_or_find(account=account, name=name, verification=verification).row


def unclaimed(names: Collection[str]) -> set[str]:
    """Those of the names that meet no claim of anybody, asked at once; wildcards are never among them.

    Nobody else claims them until the end of the transaction. In it, a claim of ours changes what this said.
    """
    lock_hostnames(name for name in names if not is_wildcard(name))
    return free_now(names)


def free_now(names: Collection[str]) -> set[str]:
    """The same at this moment: somebody may claim one of them in the next."""
    over = {name: wildcards_over(name) for name in names if not is_wildcard(name)}
    asked = sorted({*over, *(wildcard for wildcards in over.values() for wildcard in wildcards)})
    found: set[str] = set()
    for start in range(0, len(asked), AT_ONCE):
        rows = Hostname.objects.filter(name__in=asked[start : start + AT_ONCE])
        found.update(rows.values_list("name", flat=True))
    return {name for name, wildcards in over.items() if found.isdisjoint((name, *wildcards))}


def claim_unclaimed(*, account: Account, name: str, verification: str = "") -> Claimed:
    """The claim on a name of which `unclaimed` says, in this transaction, that nobody has it. Raises PublicSuffix."""
    claim = Hostname(name=name, account=account)
    _store(claim, _method(account, name, verification))
    return Claimed(claim, made=True, waited=False)


def claim_or_find(*, account: Account, name: str, verification: str = "") -> Claimed:
    """The claim of the account on a canonical name, made now where it has none; inside a transaction.

    1. Wait for others that decide about the same domain, so that a wildcard and a name under it cannot pass each other.
    2. Its own row, whoever else has claimed the name: whether somebody has is nobody's business.
    3. It is verified by `verification` (an operator's word), by a grant, or by a verified wildcard over it, unless
       another account has verified what it meets; else it waits.

    Raises PublicSuffix, and HostnameTaken to operators, who see every claim, where their word cannot verify it.
    """
    lock_hostnames([name])
    method = _method(account, name, verification)
    present = Hostname.objects.filter(name=name, account=account).first()
    claim = present or Hostname(name=name, account=account)
    waited = present is not None and not claim.verification
    if claim.released_at is not None:
        claim.released_at = None
        claim.save(update_fields=("released_at",))
        if claim.verification and _lost_meanwhile(claim):
            wait_again(claim)
    if not claim.verification:
        method = method or _inherited(account, name)
        _verify_first(claim, method) if present is None else verify_hostname(claim, method)
    if verification and not claim.verification:
        raise HostnameTaken(name)
    return Claimed(claim, present is None, waited)


def _lost_meanwhile(claim: Hostname) -> bool:
    """Whether it is not the account's any more: taken back, or verified by others since it had let go of the name."""
    granted = claim.verification == Hostname.Verification.GRANT
    if granted and not _granted(claim.account, claim.name):
        return True
    return is_kept_by_others(claim.account, claim.name, verification=claim.verification if granted else "")


def _method(account: Account, name: str, verification: str) -> str:
    """What verifies the name by itself: an operator's word or a grant; empty for neither. Raises PublicSuffix."""
    if verification or _granted(account, name):
        return verification or Hostname.Verification.GRANT
    if is_public_suffix(name):
        raise PublicSuffix(name)
    return ""


def _verify_first(claim: Hostname, verification: str) -> None:
    """Store a new claim; it is verified as it comes, since most are, and then a wildcard's others are."""
    others = bool(verification) and _verified_by_others(claim.account, claim.name).exists()
    if others and not is_kept_by_others(claim.account, claim.name, verification=verification):
        _free(claim)
        others = False
    _store(claim, "" if others else verification)
    if is_wildcard(claim.name) and claim.verification:
        verify_hostname(claim, verification)


def _store(claim: Hostname, verification: str) -> None:
    if verification:
        _note(claim, verification)
    claim.save()


def verify_hostname(claim: Hostname, verification: str) -> list[Hostname]:
    """Note how the claim was verified, and the unverified claims of the account under a wildcard with it.

    Returns the claims that were waiting until now; none for an empty verification. One that meets a verified claim of
    another account goes on waiting. The caller holds `lock_hostnames`.
    """
    if not verification:
        return []
    rows = Hostname.objects.filter(account=claim.account_id, verification="", released_at=None)
    waiting = Q(pk=claim.pk)
    if is_wildcard(claim.name):
        waiting |= Q(name__endswith=ending_of(claim.name))
    granted = verification == Hostname.Verification.GRANT
    found = [
        row
        for row in rows.filter(waiting).select_for_update(of=("self",)).select_related("account")
        if not is_kept_by_others(
            row.account, row.name, verification=verification if granted or row.pk == claim.pk else ""
        )
    ]
    for row in found:
        _free(row)
        _note(row, verification)
        row.save(update_fields=("verification", "verified_at", "version"))
        if row.pk == claim.pk:
            claim.verification, claim.verified_at, claim.version = row.verification, row.verified_at, row.version
    return found


def wait_again(claim: Hostname) -> None:
    """The claim is verified no more: it waits, and has as long for that as one that is made now."""
    claim.verification, claim.verified_at, claim.waits_since = Hostname.Verification.NONE, None, now()
    claim.checked_at, claim.last_check_message = None, ""
    claim.version += 1
    claim.save()


def _note(claim: Hostname, verification: str) -> None:
    claim.verification, claim.verified_at = verification, now()
    claim.version += 1


def _granted(account: Account, name: str) -> bool:
    grants = Grant.objects.filter(account=account, hostname__in=[name, *wildcards_over(name)])
    return grants.filter(Q(expires_at=None) | Q(expires_at__gt=now())).exists()


def _inherited(account: Account, name: str) -> str:
    """How a wildcard of the account over the name was verified: whoever rules a zone rules what is under it."""
    over = Hostname.objects.filter(account=account, name__in=wildcards_over(name), released_at=None)
    return over.exclude(verification="").values_list("verification", flat=True).first() or ""


def is_kept_by_others(account: Account, name: str, *, verification: str = "") -> bool:
    """Whether another account verified the name, a wildcard over it, or (for a wildcard) a name under it."""
    others = _verified_by_others(account, name)
    others = others.exclude(released_at__lte=now() - COOLDOWN, routes__isnull=True)
    if verification == Hostname.Verification.OPERATOR:  # who gives a name away that nobody routes
        others = others.exclude(name=name, routes__isnull=True)
    if verification == Hostname.Verification.GRANT:  # operators grant names of their own domains
        others = others.exclude(~Q(name=name), account__kind=Account.Kind.OPERATOR)
    return others.exists()


def _verified_by_others(account: Account, name: str) -> QuerySet[Hostname]:
    """What others verified, or had, of the name and of what a wildcard joins with it: of most names nothing."""
    met = Hostname.objects.filter(Q(name=name) | _joined(name))
    return met.exclude(account=account).exclude(verification="")


def _free(claim: Hostname) -> None:
    """Forget what others had of this very name and gave up: nothing that they knew is a challenge any more."""
    Hostname.objects.filter(name=claim.name).exclude(pk=claim.pk).exclude(verification="").delete()


def is_public_suffix(name: str) -> bool:
    """Whether the name, or the domain of a wildcard, is one under which anybody may have names."""
    return bool(_suffixes().is_public(domain_of(name)))


@functools.cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()  # the list that came with the package: nothing is fetched


def wildcards_over(name: str) -> list[str]:
    """Every other wildcard whose domain holds the name: `a.b.c.example` → `*.b.c.example`, `**.b.c.example` and so on.

    To whom names belong, both are the same: who rules a domain rules all names below it. `*` alone is no domain.
    """
    labels = domain_of(name).split(".")
    domains = [".".join(labels[start:]) for start in range(not is_wildcard(name), len(labels) - 1)]
    return [over for domain in domains for over in (f"*.{domain}", f"**.{domain}") if over != name]


def overlapping(name: str) -> QuerySet[Hostname]:
    """Claims of other names that a wildcard joins with this one."""
    return Hostname.objects.filter(_joined(name)).exclude(name=name)


def _joined(name: str) -> Q:
    wanted = Q(name__in=wildcards_over(name))
    return wanted | Q(name__endswith=ending_of(name)) if is_wildcard(name) and name != ANY else wanted


def drop_unused_claims(*, ids: Collection[int]) -> None:
    """Forget claims that came with a route, were never verified and have no route any more; in its transaction."""
    Hostname.objects.filter(pk__in=ids, routes__isnull=True, verification="", explicit=False).delete()
