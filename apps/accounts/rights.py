"""Pure questions: what grants and verified hostnames let an account do; nothing is changed here."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from apps.accounts.hostnames.claims import wildcards_over
from apps.accounts.models import Account, Grant, Hostname
from apps.compiler.matching.hosts import ending_of, is_wildcard
from apps.core.clock import now


def in_force() -> Q:
    """Grants that allow new uses; one that ended lets go on what already uses it."""
    return Q(expires_at=None) | Q(expires_at__gt=now())


def grants_over(account: Account, name: str) -> QuerySet[Grant]:
    """Every grant of the account that covers the hostname, those that ended as well."""
    return Grant.objects.filter(account=account, hostname__in=[name, *wildcards_over(name)])


def claims_under(account: Account, hostname: str) -> QuerySet[Hostname]:
    """Claims of the account that a grant of the hostname covers: the name, or for a wildcard every name below."""
    wanted = Q(name=hostname)
    if is_wildcard(hostname):
        wanted |= Q(name__endswith=ending_of(hostname))
    return Hostname.objects.filter(wanted, account=account)


def may_load_test(account: Account, hostname: str) -> bool:
    """Whether the account may send test load to a canonical hostname.

    It must have verified the name or a wildcard over it and not released it. Where only grants verify it, one of them
    must be in force and say so.
    """
    claims = Hostname.objects.filter(account=account, released_at=None, name__in=[hostname, *wildcards_over(hostname)])
    verifications = set(claims.exclude(verification="").values_list("verification", flat=True))
    if verifications - {Hostname.Verification.GRANT}:
        return True
    return bool(verifications) and grants_over(account, hostname).filter(in_force(), may_load_test=True).exists()
