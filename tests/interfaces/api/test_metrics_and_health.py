"""/healthz, /readyz and /metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families
from pytest_django.fixtures import Settings

from apps.accounts.tokens import create_token
from apps.core.clock import now
from apps.definitions.models import Certificate, Pool
from apps.drivers.proxy.contract import CounterReading
from apps.fleet.models import Fleet
from apps.observe import schema, services
from apps.observe.collect import lease
from apps.observe.live import store as live
from apps.observe.live.store import LiveNode
from apps.observe.models import Condition
from apps.observe.reference import page
from apps.rollouts.models import Revision, Rollout
from tests.apps.observe_env import Env, make_env, row, state

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.django_db, pytest.mark.urls("apps.observe.urls")]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def env(db: None) -> Env:
    return make_env()


def scrape(client: Client) -> Samples:
    """Samples by name and labels, read by Prometheus' own parser."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def value(samples: Samples, name: str, /, **labels: str) -> float:
    """The one sample with this name and at least these labels."""
    found = [number for (each, having), number in samples.items() if each == name and set(labels.items()) <= having]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def test_healthz_answers_without_a_query(client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        answer = client.get("/healthz")
    assert (answer.status_code, len(queries)) == (200, 0)


def test_readyz_is_ready_and_names_what_is_degraded(client: Client, live_redis: str) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["degraded"] == ["collector"]
    assert lease.share("a test").held
    assert client.get("/readyz").json() == {
        "ready": True,
        "degraded": [],
        "parts": {"database": "ok", "key": "ok", "redis": "ok", "collector": "ok", "clock": "ok"},
    }


def test_readyz_does_not_require_redis(client: Client, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    live.client.cache_clear()
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert "redis" in answer.json()["degraded"]
    live.client.cache_clear()


def test_readyz_refuses_without_the_tables(client: Client, live_redis: str) -> None:
    schema.ask_again()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'observe'")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "migrate" in answer.json()["parts"]["database"]


def put_numbers(env: Env) -> None:
    """A reading of the first node, as the collector leaves it."""
    pool, server, node = env.pools["acme"], env.servers[0], env.nodes[0]
    rows = (
        row("backend", f"pool-{pool.pk}", 120, status_2xx=100, status_5xx=20, connections_now=3, queue_now=2),
        row("server", f"srv-{server.pk}", 120, parent_id=f"pool-{pool.pk}", status="UP"),
        row("backend", "pool-999999", 5),
    )
    reading = CounterReading("one", 1.0, rows, {f"pool-{pool.pk}": {5: 2, 100: 3}})
    live.write({node.pk: LiveNode(now().timestamp(), {})}, {node.pk: reading})
    services.note_report(node_id=node.pk, state=state(7))


def test_metrics_count_what_the_nodes_counted(client: Client, env: Env, live_redis: str) -> None:
    put_numbers(env)
    found = scrape(client)
    labels = {"account": "acme", "pool": "acme-web", "region": "eu", "node": "eu-1"}
    assert value(found, "spillway_requests_total", **labels) == 120
    assert value(found, "spillway_responses_total", **labels, **{"class": "5xx"}) == 20
    assert value(found, "spillway_connections", **labels) == 3
    assert value(found, "spillway_queue", **labels) == 2
    assert value(found, "spillway_servers_up", **labels) == 1
    assert value(found, "spillway_request_duration_seconds_bucket", **labels, le="0.1") == 5
    assert value(found, "spillway_request_duration_seconds_bucket", **labels, le="+Inf") == 5
    assert value(found, "spillway_node_up", node="eu-1") == 1
    assert value(found, "spillway_node_up", node="us-1") == 0
    assert value(found, "spillway_node_generation", node="eu-1") == 7
    assert value(found, "spillway_queue_length", queue="push") == 0
    assert value(found, "spillway_collector_up") == 0


def test_of_connections_no_responses_are_told(client: Client, env: Env, live_redis: str) -> None:
    put_numbers(env)
    Pool.objects.update(protocol="tcp")
    labels = {"account": "acme", "pool": "acme-web", "region": "eu", "node": "eu-1"}
    assert value(scrape(client), "spillway_requests_total", **labels) == 120
    assert "spillway_responses_total{" not in client.get("/metrics").content.decode()


def test_metrics_tell_limits_overflow_and_what_was_refused(client: Client, env: Env, live_redis: str) -> None:
    pool, node, (eu, us) = env.pools["acme"], env.nodes[0], env.regions
    pool.backends.filter(region=eu).update(limit_kind="rate", limit_value=50, limit_scope="server", capacity_scaler=0.5)
    flows = (
        row("flow", f"pool-{pool.pk}/to/rgn-{us.pk}/rate", 30),
        row("flow", f"pool-{pool.pk}/from/rgn-{us.pk}/rate", 4),
        row("flow", f"pool-{pool.pk}/refuse/rgn-{eu.pk}/full", 9),
        row("flow", f"pool-999999/refuse/rgn-{eu.pk}/full", 1),
        row("route", "route-1", 7),
    )
    live.write({node.pk: LiveNode(now().timestamp(), {})}, {node.pk: CounterReading("one", 1.0, flows, {})})
    found = scrape(client)
    labels = {"account": "acme", "pool": "acme-web", "region": "eu"}
    ready = pool.backends.get(region=eu).servers.count()
    assert value(found, "spillway_limit_requests_per_second", **labels) == 25 * ready > 0
    assert value(found, "spillway_overflow_requests_total", **labels, node="eu-1", to="us", reason="rate") == 30
    assert value(found, "spillway_refused_requests_total", **labels, node="eu-1", reason="full") == 9
    eu.drained = True
    eu.save()
    assert value(scrape(client), "spillway_limit_requests_per_second", **labels) == 0


def test_metrics_tell_problems_and_when_certificates_end(client: Client, env: Env, live_redis: str) -> None:
    end = now()
    certificate = Certificate(account=env.acme.account, name="shop", not_before=end, not_after=end)
    certificate.save()
    assert lease.share("a test").held
    Condition.objects.create(
        object_kind="pool",
        object_id=env.pools["acme"].pk,
        type="Healthy",
        status=False,
        reason="NoServerUp",
        since=now(),
    )
    found = scrape(client)
    wrong = {"kind": "pool", "account": "acme", "name": "acme-web", "reason": "NoServerUp", "severity": "1"}
    assert value(found, "spillway_problem", **wrong) == 1
    ends = value(found, "spillway_certificate_not_after_seconds", account="acme", name="shop")
    assert ends == end.timestamp()


def test_metrics_tell_the_states_of_rollouts(client: Client, env: Env, live_redis: str) -> None:
    fleet = Fleet.objects.get(name="eu-fleet")
    revision = Revision.objects.create(fleet=fleet, number=1, digest="d", snapshot=b"", bundle=b"", actor="a")
    Rollout.objects.create(fleet=fleet, revision=revision, generation=1, actor="a", state="pushing")
    found = scrape(client)
    assert value(found, "spillway_rollouts", state="pushing") == 1
    assert value(found, "spillway_rollouts", state="failed") == 0
    assert 0 < value(found, "spillway_rollouts_oldest_unfinished_seconds") < 60


def test_the_page_of_reference_is_what_the_exposition_says_of_itself() -> None:
    written = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    assert written == page(), "write it anew: manage.py describe_metrics > docs/reference/metrics.md"


def test_metrics_without_redis_still_tell_about_nodes(client: Client, env: Env, settings: Settings) -> None:
    settings.REDIS_URL = settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    live.client.cache_clear()
    found = scrape(client)
    assert value(found, "spillway_node_up", node="eu-1") == 0
    live.client.cache_clear()


@pytest.mark.parametrize(
    ("peer", "forwarded", "status"),
    [
        ("127.0.0.1", None, 200),
        ("::1", None, 200),
        ("", None, 200),
        ("", "127.0.0.1", 200),
        ("", "203.0.113.7", 401),
        ("127.0.0.1", "203.0.113.7", 401),
        # The last entry was written by our front, the others by whoever sent the request.
        ("", "127.0.0.1, 203.0.113.7", 401),
        ("203.0.113.7", "127.0.0.1", 401),
        ("203.0.113.7", None, 401),
        ("", "nonsense", 401),
    ],
)
def test_metrics_are_for_this_machine(
    client: Client, live_redis: str, peer: str, forwarded: str | None, status: int
) -> None:
    headers = {"x-forwarded-for": forwarded} if forwarded else {}
    assert client.get("/metrics", headers=headers, REMOTE_ADDR=peer).status_code == status


def test_metrics_are_for_tokens_of_operators_from_elsewhere(client: Client, env: Env, live_redis: str) -> None:
    def ask(token: str) -> int:
        return client.get(
            "/metrics", headers={"authorization": f"Bearer {token}"}, REMOTE_ADDR="203.0.113.7"
        ).status_code

    assert ask(create_token(account=env.operator.account, name="prometheus", role="viewer")) == 200
    assert ask(create_token(account=env.acme.account, name="curious", role="admin")) == 403
    assert ask("sw_000000000000_" + "x" * 43) == 401
    assert ask("") == 401


def test_only_reading_is_allowed(client: Client) -> None:
    assert {client.post(path).status_code for path in ("/healthz", "/readyz", "/metrics")} == {405}
