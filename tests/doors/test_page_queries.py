"""CHECK, what a page asks of the database: the same with 10 rows and with 200, and never more than the ledger says.

`query_ledger.json` holds the number of SQL queries per page; a page that needs more has to say so there.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.accounts.invitations import LIFETIME
from apps.accounts.models import Account, Grant, Invitation, Membership, User
from apps.accounts.tokens import create_token
from apps.audit.models import Entry
from apps.capacity.models import Run
from apps.core.clock import now
from apps.definitions.models import CapacityTest, LoadBalancer, Pool, Route, Schedule
from apps.definitions.selectors import describe, routes
from apps.definitions.services import save_object
from apps.fleet.models import Node
from apps.schedules.models import Fire
from tests.doors.capacity_world import make_run, make_test
from tests.doors.people import client_of

LEDGER: dict[str, int] = json.loads((Path(__file__).parent / "query_ledger.json").read_text())
SERVERS = {"backends": [{"region": "us-central1", "servers": [{"name": "vm", "address": "127.0.0.1", "port": 9000}]}]}


def paths() -> dict[str, str]:
    """Every page that the tutorial's world has, by the ledger's names."""
    route = Route.objects.get(name="checkout").pk
    pool = Pool.objects.get(name="shop").pk
    return {
        "overview": "/",
        "routes": "/routes",
        "routes, live part": "/routes?partial=rows",
        "routes, search": "/routes?q=more",
        "route": f"/routes/{route}",
        "route, edit": f"/routes/{route}/edit",
        "route, new": "/routes/new",
        "route, delete": f"/routes/{route}/delete",
        "pools": "/pools",
        "pool": f"/pools/{pool}",
        "pool, edit": f"/pools/{pool}/edit",
        "pool, new": "/pools/new",
        "load balancers": "/load-balancers",
        "load balancer": f"/load-balancers/{LoadBalancer.objects.get().pk}",
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
        "node": f"/nodes/{Node.objects.earliest('id').pk}",
        "rollouts": "/rollouts",
        "schedules": "/schedules",
        "schedules, search": "/schedules?q=more&state=gave-up",
        "schedules, calendar": "/schedules/calendar?view=month",
        "schedule": f"/schedules/{Schedule.objects.get(name='measure-shop').pk}",
        "schedule, edit": f"/schedules/{Schedule.objects.get(name='measure-shop').pk}/edit",
        "schedule, new": "/schedules/new",
        "static IPs": "/static-ips",
        "capacity tests": "/capacity-tests",
        "capacity test": f"/capacity-tests/{CapacityTest.objects.earliest('id').pk}",
        "capacity test, new": "/capacity-tests/new",
        "capacity run": f"/capacity-runs/{Run.objects.earliest('id').pk}",
        "sizing": "/sizing",
        "webhooks": "/webhooks",
        "webhook, new": "/webhooks/new",
        "audit": "/audit",
        "audit entry": f"/audit/{Entry.objects.earliest('id').pk}",
        "people": "/people",
        "tokens": "/tokens",
        "token, new": "/tokens/new",
        "customers": "/accounts",
        "customer": "/accounts/acme",
        "certificates": "/certificates",
        "your account": "/account/security",
        "your sessions": "/account/sessions",
        "search": "/search?q=more",
    }


def asked(client: Client) -> dict[str, int]:
    """Queries per page, each counted at its second call."""
    counts = {}
    for name, path in paths().items():
        client.get(path)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200, path
        counts[name] = len(queries)
    return counts


def grow_accounts(rows: int) -> None:
    """As many customers, and people, invitations and tokens in every account that there was."""
    for account in Account.objects.exclude(name__startswith="more-"):
        for number in range(account.memberships.count(), rows):
            user = User.objects.create(username=f"{account.name}-{number}")
            Membership.objects.create(user=user, account=account, role="viewer")
            create_token(account=account, name=f"more-{number}", role="viewer")
            Invitation.objects.create(
                account=account,
                email=f"{number}@example.com",
                role="viewer",
                digest=f"{account.name}-{number}",
                expires_at=now() + LIFETIME,
            )
    for number in range(Account.objects.count(), rows):
        Account.objects.create(name=f"more-{number}", title=f"More {number}", kind="customer")


def grow_schedules(rows: int, acme: Actor) -> None:
    """As many schedules, every second one dense, each with a fire that gave up."""
    for number in range(Schedule.objects.count(), rows):
        every = 60 if number % 2 else 86_400
        fields = {"account": acme.account, "every_s": every, "target_kind": "topic", "target": {"topic": "t"}}
        row = Schedule.objects.create(name=f"more-{number}", next_at=now(), **fields)
        Fire.objects.create(
            schedule=row, account=acme.account, scheduled_at=now(), due_at=now(), next_try_at=now(), state="dead"
        )


def grow_to(rows: int, acme: Actor) -> None:
    """As many routes, pools, grants and schedules with a fire each."""
    grow_schedules(rows, acme)
    for number in range(Grant.objects.count(), rows):
        Grant.objects.create(name=f"more-{number}", account=acme.account, tag=f"more={number}")
    spec = describe(routes(acme).get(name="checkout"))
    shop = Pool.objects.get(name="shop")
    for number in range(Run.objects.count(), rows):
        make_run(make_test(shop, name=f"more-{number}"), steps=2 + number // 50)
    for number in range(Pool.objects.count(), rows):
        save_object(actor=acme, kind="Pool", name=f"more-{number}", spec=SERVERS)
    grow_accounts(rows)
    for number in range(Route.objects.count(), rows):
        save_object(actor=acme, kind="Route", name=f"more-{number}", spec=spec | {"path": f"/more-{number}"})


@pytest.mark.any_database  # Django asks every engine alike
def test_pages_ask_no_more_with_200_rows_than_with_10_and_no_more_than_the_ledger(
    tutorial_world: Actor, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A slow machine takes more than five minutes: then it is noted, on some page, that the session is in use.
    monkeypatch.setattr("apps.web.session_age.SEEN_EVERY", 86_400)
    client = client_of(tutorial_world)
    grow_to(10, acme)
    few = asked(client)
    grow_to(200, acme)
    assert Route.objects.count() == Pool.objects.count() == 200
    assert asked(client) == few
    assert {name: count for name, count in few.items() if count > LEDGER.get(name, 0)} == {}
    assert set(few) == set(LEDGER)
