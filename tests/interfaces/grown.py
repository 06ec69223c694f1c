"""The tutorial's definitions with so many rows of everything, for tests of what is asked of the database."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Grant, Invitation, Membership, User
from apps.accounts.sign_in.invitations import LIFETIME
from apps.accounts.tokens import create_token
from apps.alerts.models import Alert, Silence
from apps.core.clock import now
from apps.definitions.alerting.models import AlertChannel, AlertRule
from apps.definitions.models import Pool, Route, Schedule, Server, StatusPage
from apps.definitions.selectors import describe, routes
from apps.definitions.services import apply_document
from apps.fleet.models import Node
from apps.logs.models import SavedSearch
from apps.rollouts.models import Revision, Rollout, Step
from apps.schedules.models import ScheduleRun
from apps.status.models import Incident
from tests.apps.test_definitions_services import pem_pair
from tests.conftest import actor_of, apply_tutorial
from tests.fixture_cache import CachedFixture
from tests.interfaces.capacity_env import make_run, make_test

SERVERS = {"backends": [{"region": "us-central1", "servers": [{"name": "vm", "address": "127.0.0.1", "port": 9000}]}]}
# What asks once more for each row asks more than the ledger says, which was counted with 10 rows.
SIZES = [20, *(pytest.param(rows, marks=pytest.mark.exhaustive) for rows in (10, 200))]


@pytest.fixture
def grown(db: None, rows: int) -> int:
    """The definitions with so many rows, which the test is parametrized with, in the database."""
    _remembered(rows).put()
    return rows


@cache
def _remembered(rows: int) -> CachedFixture:
    return CachedFixture(lambda: _build(rows))


def _build(rows: int) -> None:
    apply_tutorial()
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    _grow_schedules(rows, acme)
    _grow_alerts(rows, acme)
    for number in range(Grant.objects.count(), rows):
        Grant.objects.create(name=f"more-{number}", account=acme.account, tag=f"more={number}")
    pools = [
        {"kind": "Pool", "name": f"more-{number}", "spec": SERVERS} for number in range(Pool.objects.count(), rows)
    ]
    apply_document(actor=acme, objects=pools)
    grow_routes(rows, acme)
    shop = Pool.objects.get(name="shop")
    backend = shop.backends.get(region__name="us-central1")
    for number in range(rows):
        fields = {"name": f"more-{number}", "address": "192.0.2.1", "port": 8000 + number}
        Server.objects.create(account=shop.account, backend=backend, **fields)
        make_run(make_test(shop, name=f"more-{number}"), steps=2 + number // 10)
    _grow_accounts(rows)
    _grow_listeners(rows)
    _grow_nodes(rows)


def grow_routes(rows: int, acme: Actor) -> None:
    """As many routes."""
    spec = describe(routes(acme).get(name="checkout"))
    found = [
        {"kind": "Route", "name": f"more-{number}", "spec": spec | {"path": f"/more-{number}"}}
        for number in range(Route.objects.count(), rows)
    ]
    apply_document(actor=acme, objects=found)


def _grow_schedules(rows: int, acme: Actor) -> None:
    """As many schedules, every second one dense, each with a run that gave up."""
    for number in range(Schedule.objects.count(), rows):
        every = 60 if number % 2 else 86_400
        fields = {"account": acme.account, "every_s": every, "target_kind": "topic", "target": {"topic": "t"}}
        row = Schedule.objects.create(name=f"more-{number}", next_at=now(), **fields)
        ScheduleRun.objects.create(
            schedule=row, account=acme.account, scheduled_at=now(), due_at=now(), next_try_at=now(), state="dead"
        )


def _grow_alerts(rows: int, acme: Actor) -> None:
    """As many alerts that an object has, rules, channels, silences, saved searches, and status pages."""
    for number in range(rows):
        named = {"account": acme.account, "name": f"more-{number}"}
        AlertRule.objects.create(**named, watches="pool-down")
        AlertChannel.objects.create(**named, type="email", to=["ops@example.com"], severities=["critical"])
        SavedSearch.objects.create(**named, filter="status>=500", measure="count", created_by="ada")
        Silence.objects.create(account=acme.account, rule="pool-down", reason="r", ends_at=now(), created_by="ada")
        page = StatusPage.objects.create(**named, title="More")
        incident = Incident.objects.create(page=page, number=1, title="More", status="resolved", begins_at=now())
        incident.updates.create(at=now(), word="Resolved", text="More")
        alert = Alert.objects.create(
            account=acme.account, title=f"More {number}", severity="critical", since=now(), opened_at=now()
        )
        alert.findings.create(
            account=acme.account,
            rule="pool-down",
            watches="pool-down",
            object_kind="pool",
            object_id=number,
            name=f"more-{number}",
            title="Down",
            severity="critical",
            since=now(),
            due_at=now(),
        )


def _grow_accounts(rows: int) -> None:
    """As many customers, and people, invitations and tokens in every account that there was."""
    for account in Account.objects.all():
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


def _grow_listeners(rows: int) -> None:
    """As many listeners, each with an address and a certificate of its own."""
    chain, key = pem_pair("shop.acme.example")
    objects: list[dict[str, Any]] = []
    listeners = []
    for number in range(rows):
        name = f"more-{number}"
        objects.append({"kind": "Certificate", "name": name, "spec": {"chain": chain, "key": key}})
        objects.append({"kind": "StaticIP", "name": name, "spec": {"address": f"127.0.1.{number}"}})
        listener = {"name": name, "protocol": "https", "port": 9000 + number, "static_ip": name}
        listeners.append({**listener, "certificates": [name]})
    spec = {"fleets": ["us-central1", "europe-west1"], "listeners": listeners}
    front = {"kind": "LoadBalancer", "name": "more", "spec": spec}
    apply_document(actor=actor_of("operator", Account.Kind.OPERATOR), objects=[*objects, front])


def _grow_nodes(rows: int) -> None:
    """As many nodes and rollouts, and in the first of these a step of each node."""
    first = Node.objects.earliest("id")
    for number in range(Node.objects.count(), rows):
        Node.objects.create(account=first.account, fleet=first.fleet, name=f"more-{number}", url=f"memory://{number}")
    for number in range(1, rows + 1):
        fields = {"number": number, "digest": f"{number:064}", "snapshot": b"", "bundle": b"", "actor": "ada"}
        revision = Revision.objects.create(fleet=first.fleet, **fields)
        Rollout.objects.create(fleet=first.fleet, revision=revision, generation=number, actor="ada")
    rollout = Rollout.objects.earliest("id")
    Step.objects.bulk_create(Step(rollout=rollout, node=node) for node in Node.objects.all())
