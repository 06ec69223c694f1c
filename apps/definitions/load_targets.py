"""Which hostnames and routes an account may load with a capacity test, as things are now."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.accounts.hostnames.claims import wildcards_over
from apps.accounts.models import Account, Hostname
from apps.accounts.rights import may_load_test, those_to_load_test
from apps.definitions.models import Pool, Route, RoutePool
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


def hostnames_to_load(account: Account, pool: Pool | None = None, text: str = "", most: int = 100) -> list[str]:
    """The first names with the text in them that lead to the pool and that the account may load now.

    Names of all routes, where none leads there yet; a wildcard stands for what is below it.
    """
    rows = Hostname.objects.filter(released_at=None).exclude(verification="")
    if not account.is_operator:
        rows = rows.filter(account=account)
    leading = rows.filter(pk__in=RoutePool.objects.filter(pool=pool, mirror=False).values("route__hostname"))
    if pool is None or not _first(account, leading, 1):
        leading = rows.filter(Exists(Route.objects.filter(hostname=OuterRef("pk"))))
    return _first(account, leading.filter(name__icontains=text) if text else leading, most)


def _first(account: Account, rows: QuerySet[Hostname], most: int) -> list[str]:
    """The first names that the account may load; operators may load any that is verified."""
    found: list[str] = []
    names = rows.order_by("name").values_list("name", flat=True)
    last = ""
    while len(found) < most and (some := list(names.filter(name__gt=last)[:most])):
        allowed = some if account.is_operator else those_to_load_test(account, some)
        found += [name for name in some if name in allowed]
        last = some[-1]
    return found[:most]
