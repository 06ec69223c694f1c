"""The setup that the table is asked in: two customers with everything that a customer can have, and an operator."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

import yaml
from django.apps import apps
from django.db import connection
from django.db.models import Model, QuerySet
from django.db.models.sql import DeleteQuery
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Account, ApiToken, Grant, Hostname, Invitation, Membership, User
from apps.accounts.tokens import create_token
from apps.alerts.models import Alert, Silence
from apps.audit.models import Entry
from apps.canaries.models import Canary
from apps.capacity.models import Blackout, Comparison, Run
from apps.core.clock import now
from apps.definitions.models import (
    AlertChannel,
    AlertRule,
    Backend,
    CapacityTest,
    Certificate,
    CertificateAuthority,
    Listener,
    LoadBalancer,
    NetworkList,
    Policy,
    Pool,
    Record,
    Route,
    Schedule,
    Server,
    StatusPage,
    StoredPlan,
    Zone,
)
from apps.definitions.selectors import make_cursor
from apps.definitions.services import apply_document
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Node, Region, Stack, StaticIP
from apps.logs.forward.services import make_forward
from apps.logs.models import LogForward, SavedSearch
from apps.replacements.models import Replacement
from apps.rollouts.models import FleetSync, Quarantine, Revision, Rollout
from apps.schedules.models import ScheduleRun, Trigger
from apps.stacks.models import StackRun
from apps.status.models import Incident
from apps.webhooks.models import Delivery, Webhook
from apps.webhooks.services import make_webhook, send_test
from tests.apps.test_definitions_services import pem_pair
from tests.conftest import TUTORIAL, actor_of
from tests.permissions.adopting_rows import make_adopting_rows
from tests.permissions.alert_rows import make_alert_rows
from tests.permissions.callers import ROLES
from tests.permissions.canary_rows import make_canary_rows
from tests.permissions.capacity_rows import make_capacity_rows
from tests.permissions.cloud_rows import make_stack_rows
from tests.permissions.replacement_rows import make_replacement_rows
from tests.permissions.schedule_api_rows import make_schedule_rows
from tests.permissions.search_rows import make_searches
from tests.permissions.status_rows import make_status_rows

Statement = tuple[str, Any]
NAMES = {"own": "acme", "other": "globex", "operators": "operator"}
OPERATORS = (
    Region,
    Fleet,
    Node,
    CertificateAuthority,
    CloudAccount,
    Stack,
    AddressPool,
    StaticIP,
    Zone,
    LoadBalancer,
    Listener,
)
REQUEST_ID = "permission-table"
NETWORK, ELSEWHERE = "127.0.0.0/8", "192.0.2.0/24"

# How each kind of row belongs to an account; rows of the others belong to nobody or to the operator alone.
OWNERS = {
    "accounts.Account": "pk",
    "accounts.Membership": "account",
    "accounts.Invitation": "account",
    "accounts.ApiToken": "account",
    "accounts.Grant": "account",
    "accounts.Hostname": "account",
    "audit.Entry": "account",
    "definitions.Certificate": "account",
    "definitions.CertificateAuthority": "account",
    "definitions.CertificateOrder": "certificate__account",
    "definitions.Pool": "account",
    "definitions.HealthCheck": "pool__account",
    "definitions.Backend": "account",
    "definitions.Server": "account",
    "definitions.Route": "account",
    "definitions.RoutePool": "route__account",
    "definitions.KeySet": "account",
    "definitions.ServerSource": "backend__account",
    "definitions.Heartbeat": "backend__account",
    "definitions.NetworkList": "account",
    "definitions.Policy": "account",
    "definitions.RoutePolicy": "route__account",
    "definitions.StoredPlan": "account",
    "definitions.CapacityTest": "account",
    "definitions.Schedule": "account",
    "definitions.Zone": "account",
    "definitions.Record": "account",
    "schedules.ScheduleRun": "account",
    "schedules.Trigger": "account",
    "schedules.SigningSecret": "schedule__account",
    "capacity.Run": "account",
    "capacity.Step": "run__account",
    "capacity.Second": "run__account",
    "capacity.Comparison": "account",
    "canaries.Canary": "account",
    "replacements.Replacement": "account",
    "replacements.ReplacedServer": "replacement__account",
    "definitions.AlertRule": "account",
    "definitions.AlertChannel": "account",
    "alerts.Alert": "account",
    "alerts.Finding": "account",
    "alerts.ChannelState": "channel__account",
    "alerts.Notification": "channel__account",
    "alerts.Told": "channel__account",
    "alerts.Silence": "account",
    "definitions.StatusPage": "account",
    "status.Incident": "page__account",
    "status.IncidentUpdate": "incident__page__account",
    "status.PoolDay": "pool__account",
    "status.DeletedIncident": "page__account",
    "definitions.LoadBalancer": "account",
    "definitions.Listener": "account",
    "fleet.Region": "account",
    "fleet.Fleet": "account",
    "fleet.Node": "account",
    "fleet.CloudAccount": "account",
    "fleet.Stack": "account",
    "fleet.AddressPool": "account",
    "fleet.StaticIP": "account",
    "logs.LogForward": "account",
    "webhooks.Webhook": "account",
    "webhooks.Delivery": "webhook__account",
    "webhooks.Attempt": "delivery__webhook__account",
    "retries.KeyedRequest": "account",
    "observe.PoolTally": "pool__account",
    "observe.RouteTally": "route__account",
    "logs.CountedLines": "account",
    "logs.LogSettings": "account",
    "logs.NodeLog": "node__account",
    "logs.SavedSearch": "account",
    "logs.MetricPoint": "search__account",
}
# Rows that say who was here, not what anybody has.
PASSING = {"sessions.Session", "usersessions.UserSession", "accounts.FailedSignIn"}


@dataclass
class Env:
    """What there is: objects of the own account and of the operator by name, and a way in for each caller."""

    objects: dict[str, Any] = field(default_factory=dict)
    clients: dict[tuple[str, str], Client] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)

    @cached_property
    def ids(self) -> dict[str, str]:
        """What `$name` in a row stands for; `$cursor` stands on a foreign route, as its owner would be given it."""
        cursor = make_cursor(("shop.acme.example", "/", self.objects["route"].pk))
        return {name: str(row.pk) for name, row in self.objects.items()} | {"cursor": cursor}


def make_env() -> Env:
    """Everything, in the database of now."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:  # for a moment the record lets an entry be missing, too
            cursor.execute("ALTER TABLE audit_entry DISABLE TRIGGER USER")
    env = Env()
    operator = actor_of("operator", Account.Kind.OPERATOR)
    for name in ("acme", "globex"):
        actor_of(name, Account.Kind.CUSTOMER)
    apply_document(actor=operator, objects=yaml.safe_load(TUTORIAL.read_text())["objects"])
    env.accounts = {word: Account.objects.get(name=name) for word, name in NAMES.items()}
    for actor in (Actor("somebody", account, "admin") for account in env.accounts.values()):
        _more_of(actor)
    Hostname.objects.update(verification=Hostname.Verification.DNS, verified_at=now())
    Hostname.objects.filter(name__startswith="cooling.").update(released_at=now())
    _share_a_zone(operator, Actor("somebody", env.accounts["own"], "admin"))
    make_stack_rows()
    make_adopting_rows()
    make_capacity_rows(env.accounts["own"])
    make_schedule_rows(env.accounts["own"])
    make_replacement_rows(env.accounts["own"])
    make_canary_rows(env.accounts["own"])
    make_alert_rows(env.accounts["own"])
    make_searches(env.accounts["own"])
    for model in (Pool, Route):
        model.objects.filter(account=env.accounts["own"]).update(objective={"availability": 99.9})
    make_status_rows(env.accounts["own"], env.accounts["other"])
    _let_in(env)
    _plan(env)
    env.objects = dict(_objects(env))
    return env


def _more_of(actor: Actor) -> None:
    """What the tutorial does not have: a pool that nobody uses, a certificate, an invitation, a plan."""
    chain, key = pem_pair(f"shop.{actor.account.name}.example", days=40)
    pool: dict[str, Any] = {"kind": "Pool", "name": "spare", "spec": {"protocol": "http", "backends": []}}
    policy = {"kind": "Policy", "name": "web", "spec": {"rules": {"security_headers": {"no_sniff": True}}}}
    networks = {"kind": "NetworkList", "name": "offices", "spec": {"entries": [{"network": "192.0.2.0/24"}]}}
    objects = [pool, networks, policy, {"kind": "Certificate", "name": "shop", "spec": {"chain": chain, "key": key}}]
    if actor.is_operator:
        objects.append({"kind": "StaticIP", "name": "front", "spec": {"region": "us-central1", "address": "192.0.2.7"}})
    apply_document(actor=actor, objects=objects)
    account, later = actor.account, now() + timedelta(days=5)
    Invitation.objects.create(
        account=account, email="new@example.com", role="viewer", digest=account.name, invited_by="x", expires_at=later
    )
    for word in ("free", "cooling"):
        Hostname.objects.create(account=account, name=f"{word}.{account.name}.example")
    hook, _ = make_webhook(actor=actor, name="hook", account=None, spec={"url": "https://hooks.example/x"}, reason="")
    send_test(actor=actor, webhook_id=hook.pk)
    make_forward(actor=actor, name="elsewhere", spec={"url": "https://logs.example/v1/logs"})
    Grant.objects.create(name=f"of-{account.name}", account=account, hostname=f"granted.{account.name}.example")


def _share_a_zone(operator: Actor, own: Actor) -> None:
    """Clouds of the operator, and a zone that the own account alone keeps records in."""
    network = {"vpc": "vpc-0a1b2c3d", "subnets": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"]}
    stack = {"cloud_account": "prod", "cloud_region": "eu-central-1", "region": "us-central1", "network": network}
    zone = {"domain": "shared.example.net", "driver": "memory", "tags": {"customer": "acme"}}
    objects: list[dict[str, Any]] = [
        {"kind": "CertificateAuthority", "name": "ca", "spec": {"directory_url": "https://ca.example/directory"}},
        {"kind": "CloudAccount", "name": "prod", "spec": {"cloud": "aws", "credentials": "env:AWS_PROD"}},
        {"kind": "Stack", "name": "aws-eu", "spec": stack},
        {"kind": "Stack", "name": "aws-us", "spec": stack | {"cloud_region": "us-east-1"}},
        {"kind": "AddressPool", "name": "addresses", "spec": {"blocks": ["203.0.113.0/28"]}},
        {"kind": "Zone", "name": "shared", "spec": zone},
        {"kind": "Grant", "name": "zone-of-acme", "spec": {"account": "acme", "tag": "customer=acme"}},
    ]
    apply_document(actor=operator, objects=objects)
    record = {"zone": "operator/shared", "label": "www", "type": "A", "values": ["192.0.2.80"]}
    apply_document(actor=own, objects=[{"kind": "Record", "name": "www", "spec": record}])


def _let_in(env: Env) -> None:
    """Three people and three tokens per account, and the odd tokens of the own owner."""
    for word, account in env.accounts.items():
        for role in ROLES:
            user = User.objects.create(username=f"{role}-of-{account.name}")
            Membership.objects.create(user=user, account=account, role=role)
            env.clients[word, role] = Client(raise_request_exception=False)
            env.clients[word, role].force_login(user)
            env.clients[word, role].get("/healthz")  # a session that was seen is not noted anew for minutes
            env.tokens[f"{word} {role}"] = create_token(account=account, name=f"for {role}", role=role)
    odd: dict[str, dict[str, Any]] = {
        "expired": {"lifetime": timedelta(seconds=-1)},
        "revoked": {},
        "narrow": {"scopes": ["events:write"]},
        "elsewhere": {"networks": [ELSEWHERE]},
        "read only": {"scopes": ["*:read"], "networks": [NETWORK]},
    }
    for name, limits in odd.items():
        env.tokens[name] = create_token(account=env.accounts["own"], name=name, role="admin", **limits)
    ApiToken.objects.filter(name="revoked").update(revoked_at=now())
    # Uses are noted once a minute; none of them shall be within the next hours.
    ApiToken.objects.update(last_used_at=now() + timedelta(days=1))


def _plan(env: Env) -> None:
    """A plan of the own account, that was shown and not applied."""
    pool = {"kind": "Pool", "name": "planned", "spec": {"protocol": "http", "backends": []}}
    headers = {"Authorization": f"Bearer {env.tokens['own admin']}"}
    url, kind = "/api/v1/apply?dry_run=plan", "application/json"
    answer: Any = Client().put(url, {"objects": [pool]}, kind, headers=headers)
    assert answer.status_code == 200, answer.content


def _objects(env: Env) -> Iterator[tuple[str, Any]]:
    own, operator = env.accounts["own"], env.accounts["operators"]
    owned = (Route, NetworkList, Policy, Pool, Backend, Server, Certificate, Hostname, Invitation, StoredPlan, Entry)
    for model in owned:
        yield model.__name__.lower(), model._default_manager.filter(account=own).earliest("pk")
    yield "logforward", LogForward.objects.get(account=own)
    yield "webhook", Webhook.objects.get(account=own)
    yield "blackout", Blackout.objects.get()
    yield "comparison", Comparison.objects.get()
    yield from (("replacement", Replacement.objects.get()), ("canary", Canary.objects.get()))
    yield "delivery", Delivery.objects.get(webhook__account=own)
    yield "schedule", Schedule.objects.get(account=own, name="nightly")
    yield "trigger", Trigger.objects.get(account=own, name="ci")
    yield "schedulerun", ScheduleRun.objects.get(account=own, state="dead")
    yield "alert", Alert.objects.get(account=own)
    yield "silence", Silence.objects.get(account=own)
    yield "savedsearch", SavedSearch.objects.get(account=own)
    yield "statuspage", StatusPage.objects.get(account=own)
    yield "incident", Incident.objects.get(page__account=own)
    yield "alertrule", AlertRule.objects.get(account=own)
    yield "alertchannel", AlertChannel.objects.get(account=own)
    yield "capacitytest", CapacityTest.objects.get(account=own, name="measure")
    yield "run", Run.objects.get(account=own, state="done")
    yield "going", Run.objects.get(account=own, state="running")
    yield "spare", Pool.objects.get(account=own, name="spare")
    for word in ("free", "cooling"):
        yield word, Hostname.objects.get(account=own, name__startswith=f"{word}.")
    yield "theirs", Pool.objects.get(account=env.accounts["other"], name="api")
    yield "account", own
    yield "person", Membership.objects.get(account=own, role="editor")
    yield "token", ApiToken.objects.get(account=own, name="for editor")
    yield "grant", Grant.objects.get(name="of-acme")
    yield "stackrun", StackRun.objects.get()
    yield "record", Record.objects.get(account=own)
    for platform in OPERATORS:
        yield platform.__name__.lower(), platform._default_manager.filter(account=operator).earliest("pk")
    fleet = Fleet.objects.earliest("pk")
    FleetSync.objects.get_or_create(fleet=fleet)
    revisions = [
        Revision.objects.create(fleet=fleet, number=number, digest=f"{number:064}", snapshot=b"", bundle=b"")
        for number in (1, 2)
    ]
    yield "revision", revisions[0]
    shop = Route.objects.filter(account=own).earliest("pk")
    refused = {"part_of": f"route-{shop.pk}", "label": f"{own.name}/{shop.name}", "message": "unknown keyword"}
    yield "quarantine", Quarantine.objects.create(fleet=fleet, object_id=f"route-{shop.pk}", **refused)
    yield (
        "rollout",
        Rollout.objects.create(
            fleet=fleet, revision=revisions[0], generation=1, state="done", actor="x", finished_at=now()
        ),
    )


def rows_of(account: Account) -> list[QuerySet[Model]]:
    """Everything that belongs to the account, a query per kind of row."""
    return [
        apps.get_model(label)._base_manager.filter(**{path: account.pk}).order_by("pk")
        for label, path in OWNERS.items()
    ]


def everything() -> list[QuerySet[Model]]:
    """Every row of the database but those that only say who was here."""
    return [model._base_manager.order_by("pk") for model in apps.get_models() if model._meta.label not in PASSING]


@functools.cache
def _reading(account: Account | None) -> dict[type[Model], Statement]:
    """What reads everything, or all that is the account's: worked out once, for it is asked again and again."""
    queries = everything() if account is None else rows_of(account)
    columns = {each.model: [field.attname for field in each.model._meta.concrete_fields] for each in queries}
    return {each.model: each.values_list(*columns[each.model]).query.sql_with_params() for each in queries}


@functools.cache
def _taking_away(account: Account) -> list[Statement]:
    """What deletes all that is the account's, likewise."""
    found: list[Statement] = []
    for each in rows_of(account):
        query: Any = each.order_by().query.clone()
        query.__class__ = DeleteQuery
        found.append(query.get_compiler(each.db).as_sql())
    return found


def watched(account: Account | None) -> Iterable[type[Model]]:
    """What has rows of the account, or all models but those that only say who was here."""
    return _reading(account)


def dump(account: Account | None, models: Iterable[type[Model]]) -> dict[type[Model], list[tuple[Any, ...]]]:
    """All rows of the models, or the account's, as the database says them, to compare before and after."""
    found = {}
    for model in models:
        with connection.cursor() as cursor:
            cursor.execute(*_reading(account)[model])
            found[model] = cursor.fetchall()
    return found


def take_away(env: Env, name: str) -> None:
    """Make an object missing, whatever still points to it: what comes after is undone, not committed."""
    if name == "all":
        with connection.cursor() as cursor:
            for statement in _taking_away(env.accounts["own"]):
                cursor.execute(*statement)
        return
    row = env.objects[name]
    query = type(row)._base_manager.filter(pk=row.pk)
    query._raw_delete(query.db)  # without asking what points to it
