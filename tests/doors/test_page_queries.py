"""CHECK, what a page asks of the database: the same with 10 rows and with 200, and never more than the ledger says.

`query_ledger.json` holds the number of SQL queries per page; a page that needs more has to say so there.
"""

from __future__ import annotations

import json
from pathlib import Path

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.accounts.invitations import LIFETIME
from apps.accounts.models import Account, Grant, Invitation, Membership, User
from apps.accounts.tokens import create_token
from apps.audit.models import Entry
from apps.core.clock import now
from apps.definitions.models import LoadBalancer, Pool, Route
from apps.definitions.selectors import describe, routes
from apps.definitions.services import save_object
from apps.fleet.models import Node
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
        "static IPs": "/static-ips",
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


def grow_to(rows: int, acme: Actor) -> None:
    """As many routes, pools and grants."""
    for number in range(Grant.objects.count(), rows):
        Grant.objects.create(name=f"more-{number}", account=acme.account, tag=f"more={number}")
    spec = describe(routes(acme).get(name="checkout"))
    for number in range(Pool.objects.count(), rows):
        save_object(actor=acme, kind="Pool", name=f"more-{number}", spec=SERVERS)
    grow_accounts(rows)
    for number in range(Route.objects.count(), rows):
        save_object(actor=acme, kind="Route", name=f"more-{number}", spec=spec | {"path": f"/more-{number}"})


def test_pages_ask_no_more_with_200_rows_than_with_10_and_no_more_than_the_ledger(
    tutorial_world: Actor, acme: Actor
) -> None:
    client = client_of(tutorial_world)
    grow_to(10, acme)
    few = asked(client)
    grow_to(200, acme)
    assert Route.objects.count() == Pool.objects.count() == 200
    assert asked(client) == few
    assert {name: count for name, count in few.items() if count > LEDGER.get(name, 0)} == {}
    assert set(few) == set(LEDGER)
