"""A console in this process for browsers: the tutorial's environment with its nodes in memory, live, with traffic.

Its pages are those of the product. What changes by itself is told by no event: the stream of events stands, and is
silent.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import yaml
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.accounts.tokens import create_token
from apps.alerts.evaluate.evaluating import store
from apps.alerts.looking.watching import Watcher
from apps.core.clock import now
from apps.definitions.models import Pool, Server
from apps.definitions.services import apply_document
from apps.drivers.logs.contract import Record
from apps.drivers.logs.registry import open_logs
from apps.drivers.proxy.memory import memory_node
from apps.fleet.models import Fleet, Node
from apps.observe.collect import lease
from apps.observe.collect.buckets import SHORT, start_of
from apps.observe.collect.recorder import Recorder
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.models import CollectorLease
from apps.observe.services import store_verdicts
from apps.rollouts import services
from tests.apps.observe_env import reading, row
from tests.apps.pushed import NodesRemembered
from tests.browser import patient_context
from tests.conftest import TUTORIAL, actor_of
from tests.e2e.pages import CLOUDS, of_first
from tests.interfaces.people import client_of

SECONDS = 20
SILENT_EVENTS = """
window.EventSource = class extends EventTarget {
  constructor() { super(); setTimeout(() => this.onopen?.(new Event("open"))); }
  close() {}
};
"""


def _objects() -> list[dict[str, Any]]:
    """The tutorial with its nodes in memory, and clouds."""
    found: list[dict[str, Any]] = yaml.safe_load(TUTORIAL.read_text())["objects"]
    for each in found:
        if each["kind"] == "Node":
            each["spec"]["url"] = f"memory://console-{each['name']}"
    return found + copy.deepcopy(CLOUDS)


def _build() -> None:
    for name in ("acme", "globex"):
        actor_of(name, Account.Kind.CUSTOMER)
    apply_document(actor=actor_of("operator", Account.Kind.OPERATOR), objects=_objects())
    for fleet in Fleet.objects.all():
        assert services.reconcile_fleet(fleet_id=fleet.pk)


_WORLD = NodesRemembered(_build)


def put_env() -> None:
    """Have it in an empty database, with traffic until a moment ago: a pool of a region that spills into the other."""
    _WORLD.put()
    pool = f"pool-{Pool.objects.get(name='shop').pk}"
    home, away = Node.objects.filter(name__in=["eu-1", "us-1"]).order_by("-name")
    start = datetime.fromtimestamp(start_of(now().timestamp(), SHORT) - SECONDS - SHORT, UTC)
    spills = f"{pool}/to/rgn-{away.fleet.region_id}/rate", f"{pool}/from/rgn-{home.fleet.region_id}/-"
    recorder = Recorder()
    for second in range(0, SECONDS + 1, 2):
        at, spilled = start + timedelta(seconds=second), 99 * second // 10
        here = row("backend", pool, 10 * second), row("flow", spills[0], spilled, parent_id=pool)
        there = row("backend", pool, 2 * second + spilled), row("flow", spills[1], spilled, parent_id=pool)
        recorder.gather([reading(home, at, here), reading(away, at, there)])
    recorder.flush()
    _look_after_nodes()


def _look_after_nodes() -> None:
    """A collector does so from now on for an hour, and finds every server up."""
    assert lease.share("a test").held
    CollectorLease.objects.update(until=now() + timedelta(hours=1))
    up = (Type.UP, True, Reason.CHECK_PASSES, "Its check passes.")
    healthy = (Type.HEALTHY, True, Reason.ALL_SERVERS_UP, "All servers are up.")
    servers, pools = (model.objects.values_list("pk", flat=True) for model in (Server, Pool))
    verdicts = [Verdict("server", server, *up) for server in servers]
    store_verdicts(verdicts + [Verdict("pool", pool, *healthy) for pool in pools], now())


def first_id(listed: str) -> str:
    """The id of the first object that the operator's API lists there."""
    secret = create_token(account=Account.objects.get(name="operator"), name="reads", role="viewer")
    answer = Client(headers={"Authorization": f"Bearer {secret}"}).get(of_first(listed))
    return str(json.loads(answer.content)["items"][0]["id"])


def put_request_and_alert() -> None:
    """What a collector of lines and a scheduler would find: a request that no server took, and a pool that is down."""
    put_request(1)
    pool, message = Pool.objects.get(name="shop"), "No server is up: eu-vm-1 (L4CON)."
    store_verdicts([Verdict("pool", pool.pk, Type.HEALTHY, False, Reason.NO_SERVER_UP, message)], now())
    store(Watcher().look(now()), now())


def put_request(number: int) -> None:
    """The line of a request that no server took half a minute ago."""
    at, account = now().astimezone(UTC) - timedelta(seconds=30), Account.objects.get(name="acme")
    lost = Record(
        time=at, id=f"{int(at.timestamp() * 1000):012x}7{number:019x}", node="eu-1", fleet="eu", account=account.pk,
        load_balancer="main", listener="http", route="shop", pool="shop", home_region="europe-west1", why="no_server",
        status=503, termination="SC", queue_ms=0, total_ms=3, request_ms=0, bytes_in=80, bytes_out=107,
        client="192.0.2.7", method="GET", host="shop.acme.example", path="/cart",
    )  # fmt: skip
    open_logs(settings.LOGS_URL).store(f"batch-{number}", [lost])


def signed_in(browser: Browser, url: str, actor: Actor) -> BrowserContext:
    """The context of somebody of the actor's account who is signed in there."""
    context = patient_context(browser, base_url=url)
    session = client_of(actor).cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": session, "domain": urlsplit(url).hostname or "", "path": "/"}])
    context.add_init_script(SILENT_EVENTS)
    return context


def go_on(page: Page) -> None:
    """What workers and collectors do: push what is to be pushed, find every server up, and tell the page of it."""
    for fleet in Fleet.objects.all():
        services.reconcile_fleet(fleet_id=fleet.pk)
    _look_after_nodes()
    for topic in ("samples", "rollouts", "definitions"):
        page.evaluate("topic => document.body.dispatchEvent(new CustomEvent(`spillway:${topic}`, {detail: {}}))", topic)


def texts_of_nodes() -> Iterator[str]:
    """All files that each node in memory runs."""
    for url in Node.objects.values_list("url", flat=True):
        yield b"\n".join(memory_node(urlsplit(url).netloc).files.values()).decode()
