"""Which hostnames and routes an account may load with a capacity test, as things are now."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.accounts.hostnames.claims import wildcards_over
from apps.accounts.models import Account, Hostname
from apps.accounts.rights import may_load_test
from apps.definitions.models import Pool, Route
from apps.fleet.models import Fleet, Region


def hostname_may_be_tested(owner: Account, hostname: str, region: Region) -> bool:
    """Whether the account may load the name now: its own verified one; operators any claimed one, all in development.

    Where every fleet of the region is marked as local development, nothing of anybody else's can be hit.
    """
    if may_load_test(owner, hostname):
        return True
    if not owner.is_operator:
        return False
    names = [hostname, *wildcards_over(hostname)]
    rows = Hostname.objects.filter(name__in=names, released_at=None).exclude(verification="")
    return is_local(region) or rows.exists()


def is_local(region: Region) -> bool:
    """Whether there are fleets in the region and all are marked for local development."""
    return set(Fleet.objects.filter(region=region).values_list("local_development", flat=True)) == {True}


def routes_to(owner: Account, pool: Pool, region: Region, hostname: str, path: str) -> QuerySet[Route]:
    """Routes of the host that take the path and lead it to the pool, on load balancers with a fleet in the region."""
    names = [hostname, *wildcards_over(hostname)]
    prefixes = {"/", *(path[:end] for end, sign in enumerate(path) if sign == "/" and end), path}
    covering = Q(path_kind="exact", path=path) | Q(path_kind="prefix", path__in=prefixes)
    rows = Route.objects.filter(covering, hostname__name__in=names, hostname__released_at=None)
    rows = rows.filter(pools__pool=pool, pools__weight__gt=0, load_balancer__fleets__region=region)
    return (rows if owner.is_operator else rows.filter(account=owner)).distinct()


def testable_hostnames(account: Account) -> list[str]:
    """Names of the account's routes that it may load now, for choosing from; a wildcard stands for what is below it."""
    rows = Hostname.objects.filter(released_at=None).exclude(verification="")
    if not account.is_operator:
        rows = rows.filter(account=account)
    routed = Exists(Route.objects.filter(hostname=OuterRef("pk")))
    names = rows.filter(routed).order_by("name").values_list("name", flat=True)
    return [name for name in names[:1000] if account.is_operator or may_load_test(account, name)]
