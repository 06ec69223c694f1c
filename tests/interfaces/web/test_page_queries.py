"""What a page asks of the database: what the ledger says, however many rows there are.

`query_ledger.json` holds the number of SQL queries per page; a page that needs more, or less, has to say so there.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Account, Grant
from apps.audit.models import Entry
from apps.capacity.models import Run
from apps.definitions.models import CapacityTest, LoadBalancer, Pool, Route, Schedule
from apps.fleet.models import Fleet, Node
from apps.rollouts.models import Rollout
from tests.conftest import actor_of
from tests.interfaces.grown import SIZES, grown
from tests.interfaces.people import client_of

__all__ = ["grown"]
LEDGER: dict[str, int] = json.loads((Path(__file__).parent / "query_ledger.json").read_text())
PARTS = 5  # so that several workers share the pages


OF_ROUTES = {
    "overview": "/",
    "routes": "/routes",
    "routes, live part": "/routes?partial=rows",
    "routes, search": "/routes?q=more",
}
OF_EVERYBODY = {
    "your account": "/account/security",
    "your sessions": "/account/sessions",
    "search": "/search?q=more",
    "wall": "/wall",
    "badges": "/badges",
    "changes": "/changes",
}
OF_PEOPLE = {
    "people": "/people",
    "tokens": "/tokens",
    "token, new": "/tokens/new",
    "customers": "/accounts",
    "customer": "/accounts/acme",
}
OF_REQUESTS = {
    "requests": "/requests",
    "requests, SQL": "/requests/sql",
    "request log settings": "/requests/settings",
    "log forwards": "/log-forwards",
    "request patterns": "/requests/patterns",
    "saved searches": "/requests/saved",
    "status pages": "/status-pages",
}


def paths() -> dict[str, str]:
    """Every page that the tutorial's environment has, by the ledger's names."""
    route = Route.objects.get(name="checkout").pk
    pool = Pool.objects.get(name="shop").pk
    return {
        **OF_ROUTES,
        "route": f"/routes/{route}",
        "route, side by side": f"/routes/{route}/sides",
        "route, edit": f"/routes/{route}/edit",
        "route, new": "/routes/new",
        "route, delete": f"/routes/{route}/delete",
        "pools": "/pools",
        "pool": f"/pools/{pool}",
        "pool, definition": f"/definition/pool/{pool}?tab=generated",
        "pool, edit": f"/pools/{pool}/edit",
        "pool, new": "/pools/new",
        "policy, new": "/policies/new",
        "load balancers": "/load-balancers",
        "load balancer": f"/load-balancers/{LoadBalancer.objects.get(name='front').pk}",
        "export": f"/export/{LoadBalancer.objects.get(name='front').pk}",
        "listener, new": f"/load-balancers/{LoadBalancer.objects.get(name='front').pk}/listeners/new",
        "hostnames": "/hostnames",
        "hostname": f"/hostnames/{Route.objects.get(pk=route).hostname_id}",
        "grants": "/grants",
        "grant": f"/grants/{Grant.objects.earliest('id').name}",
        "overflow": "/overflow",
        "overflow, live part": "/overflow?partial=now",
        "overflow, what if": "/overflow?factor=1.5",
        "overflow of a pool": f"/overflow?pool={pool}",
        "regions": "/regions",
        "region": "/regions/us-central1",
        "region, drain": "/regions/us-central1/drain",
        "fleets": "/fleets",
        "fleet": f"/fleets/{Fleet.objects.earliest('id').pk}",
        "node": f"/nodes/{Node.objects.earliest('id').pk}",
        "quarantine": "/quarantine",
        "rollouts": "/rollouts",
        "rollout": f"/rollouts/{Rollout.objects.earliest('id').pk}",
        "schedules": "/schedules",
        "schedules, search": "/schedules?q=more&state=gave-up",
        "schedules, calendar": "/schedules/calendar?view=month",
        "schedule": f"/schedules/{Schedule.objects.get(name='measure-shop').pk}",
        "schedule, edit": f"/schedules/{Schedule.objects.get(name='measure-shop').pk}/edit",
        "schedule, new": "/schedules/new",
        "static IPs": "/static-ips",
        "capacity tests": "/capacity-tests",
        "capacity test": f"/capacity-tests/{CapacityTest.objects.earliest('id').pk}",
        "capacity test, new": "/capacity-tests/new?pool=acme/shop",
        "capacity run": f"/capacity-runs/{Run.objects.earliest('id').pk}",
        "sizing": "/sizing",
        "webhooks": "/webhooks",
        "webhook, new": "/webhooks/new",
        **OF_REQUESTS,
        "audit": "/audit",
        "audit entry": f"/audit/{Entry.objects.earliest('id').pk}",
        "change": f"/changes/{Entry.objects.filter(object_kind='Pool').earliest('id').pk}",
        **OF_PEOPLE,
        "certificates": "/certificates",
        **OF_EVERYBODY,
        "banned clients": "/client-bans",
    }


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("rows", SIZES)
def test_a_page_asks_what_the_ledger_says_however_many_rows_there_are(grown: int, part: int) -> None:
    client, pages = client_of(actor_of("operator", Account.Kind.OPERATOR)), paths()
    assert Route.objects.count() == Pool.objects.count() == grown
    assert list(pages) == list(LEDGER)
    client.get("/")  # a first request reads what others keep
    asked = {}
    for name, path in list(pages.items())[part::PARTS]:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200, path
        asked[name] = len(queries)
    assert asked == {name: LEDGER[name] for name in asked}
