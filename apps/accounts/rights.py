"""Pure questions: what grants and verified hostnames let an account do; nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterable

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
    """Whether the account may send test load to a canonical hostname."""
    return hostname in those_to_load_test(account, [hostname])


def those_to_load_test(account: Account, hostnames: Iterable[str]) -> set[str]:
    """Those of the canonical hostnames to which the account may send test load.

    It must have verified the name or a wildcard over it and not released it. Where only grants verify it, one of them
    must be in force and say so.
    """
    over = {name: {name, *wildcards_over(name)} for name in hostnames}
    claims = Hostname.objects.filter(account=account, released_at=None, name__in=set().union(*over.values()))
    verified = dict(claims.exclude(verification="").values_list("name", "verification"))
    own = {name for name, by in verified.items() if by != Hostname.Verification.GRANT}
    found = {name for name, names in over.items() if names & own}
    rest = {name: names for name, names in over.items() if name not in found and names & verified.keys()}
    if rest:
        grants = Grant.objects.filter(in_force(), account=account, hostname__in=set().union(*rest.values()))
        granted = set(grants.filter(may_load_test=True).values_list("hostname", flat=True))
        found |= {name for name, names in rest.items() if names & granted}
    return found
