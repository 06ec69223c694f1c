"""Spillway's own health: processes, queues, times of the console, states since when, and the bundle for support."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.cli.management.commands import schedule
from apps.core.clock import database_now, now
from apps.core.queue import SENT_AT, enqueue
from apps.core.secrets.sealing import seal
from apps.fleet.certificates.models import NodeCertificate
from apps.fleet.models import Node
from apps.observe.live import store as live
from apps.observe.models import Condition
from apps.system import heartbeat, http_times, recent_errors, selectors
from apps.system.models import PartState, Process
from apps.system.parts import broker, database, machine, processes, web
from apps.system.parts.part import Part, State
from apps.system.queues import NAMES, queues
from apps.system.support import bundle
from apps.system.support.removing import clean
from apps.webhooks.models import Webhook
from tests.apps.observe_env import make_env
from tests.e2e.installation import broker as broker_at

pytestmark = pytest.mark.django_db


def part(name: str) -> Part:
    return next(each for each in selectors.parts_since() if each.name == name)


def process(kind: str, ago_s: float = 0.0, **fields: object) -> Process:
    at = database_now() - timedelta(seconds=ago_s)
    given = {"host": "a", "pid": 7, "version": "1", "began_at": at, "heard_at": at, **fields}
    return Process.objects.create(kind=kind, **given)


def test_a_process_beats_and_is_missed_when_it_is_silent() -> None:
    kind = processes.kind("web", "spillway-web.service")
    assert (kind.state, kind.message) == (State.UNKNOWN, "None was ever heard of.")
    heartbeat.beat("web", first=True)
    assert processes.kind("web", "x").state == State.OK
    Process.objects.update(heard_at=database_now() - timedelta(seconds=50))
    missed = processes.kind("web", "spillway-web.service")
    assert (missed.state, missed.remedy) == (State.FAILED, "Start spillway-web.service on a console.")
    heartbeat.beat("web")
    assert Process.objects.get().pid == os.getpid()
    Process.objects.update(heard_at=database_now() - timedelta(days=2))
    heartbeat.forget()
    assert not Process.objects.exists()


def test_a_queue_without_a_worker_is_named() -> None:
    process("worker", queues="default,push")
    process("worker", pid=8, queues=",".join(name for name in NAMES if name not in ("default", "push")))
    assert processes.workers().state == State.OK
    Process.objects.filter(pid=7).update(heard_at=database_now() - timedelta(minutes=5))
    found = processes.workers()
    assert (found.state, found.message) == (State.FAILED, "Nobody takes from default, push.")
    Process.objects.filter(pid=8).update(heard_at=database_now() - timedelta(minutes=5))
    Process.objects.filter(pid=7).update(heard_at=database_now())
    assert processes.workers().state == State.WARNING


def test_two_versions_are_told_apart() -> None:
    process("web", version="0.1.0+aaaaaaaa")
    assert processes.versions().state == State.OK
    process("worker", host="b", version="0.1.0+bbbbbbbb")
    assert (processes.versions().state, len(processes.versions().details)) == (State.WARNING, 2)


def test_queues_tell_how_long_the_oldest_waits(live_redis: str) -> None:
    assert {(each.length, each.oldest_s) for each in queues()} == {(0, 0.0)}
    with broker_at(live_redis):
        assert enqueue("apps.rollouts.tasks.reconcile_fleet", 1)
    found = {each.name: each for each in queues()}["push"]
    assert found.length == 1
    assert found.oldest_s is not None
    assert 0 <= found.oldest_s < 60
    message = json.loads(str(live.client().lindex("push", -1)))
    message["headers"][SENT_AT] = now().timestamp() - 400
    live.client().rpush("push", json.dumps(message))
    late = broker.waiting()
    assert (late.state, late.message) == (State.WARNING, "Wake-ups wait in push.")
    live.client().rpush("push", "of another program")
    assert {each.name: each for each in queues()}["push"].oldest_s is None


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_forgotten_keeps_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("broken")

    heartbeat.beat("web")
    Process.objects.update(heard_at=database_now() - timedelta(days=2))
    monkeypatch.setattr("apps.observe.rolling.prune", fail)
    monkeypatch.setattr("apps.status.services.prune", fail)
    schedule.tidy()
    assert not Process.objects.exists()


def test_a_fleet_that_cannot_be_worked_on_here_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[int] = []

    def reconcile(*, fleet_id: int) -> None:
        worked.append(fleet_id)
        raise RuntimeError("broken")

    monkeypatch.setattr("apps.rollouts.services.fleets_to_sweep", lambda: [1, 2])
    monkeypatch.setattr("apps.rollouts.services.reconcile_fleet", reconcile)
    monkeypatch.setattr(schedule, "enqueue", lambda *_, **__: False)
    monkeypatch.setattr("apps.rollouts.tickets.fleets_to_sweep", lambda _: [])
    monkeypatch.setattr("apps.enrolment.renewing.due", lambda _: Node.objects.none())
    monkeypatch.setattr("apps.enrolment.rotating.under_way", lambda: False)
    monkeypatch.setattr("apps.dns.services.zones_to_sweep", list)
    monkeypatch.setattr("apps.webhooks.delivering.due_webhooks", list)
    schedule.sweep()
    assert worked == [1, 2]


def test_times_of_the_console_are_summed_and_judged(live_redis: str, client: Client) -> None:
    http_times._counts.clear()
    assert web.answers().state == State.UNKNOWN
    for _ in range(30):
        http_times.note("/pools", 200, 0.02)
    http_times.note("/api/v1/pools", 500, 3.0)
    http_times.flush()
    page, api = (http_times.lately()[kind] for kind in ("page", "api"))
    assert (page.requests, page.percentile_s(0.95), api.classes["5xx"], api.percentile_s(0.5)) == (30, 0.025, 1, 5.0)
    assert web.answers().state == State.OK, "one error of one request says nothing"
    for _ in range(30):
        http_times.note("/api/v1/pools", 503, 0.1)
    http_times.flush()
    http_times.flush()
    assert web.answers().state == State.WARNING
    assert http_times.totals()[http_times.HERE]["api"].requests == 31
    live.client().sadd(http_times.HOSTS, "a-pod-of-last-month")
    assert list(http_times.totals()) == [http_times.HERE]
    assert live.client().smembers(http_times.HOSTS) == {http_times.HERE}
    client.get("/sign-in")
    client.get("/healthz")
    assert sum(http_times._counts[f"page:class:{number}xx"] for number in range(1, 6)) == 1


def test_what_redis_does_not_take_waits(settings: Settings, live_redis: str) -> None:
    http_times._counts.clear()
    http_times.note("/", 200, 0.1)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    live.client.cache_clear()
    http_times.flush()
    assert http_times._counts["page:class:2xx"] == 1
    assert part("queues").state == State.UNKNOWN, "nobody knows"
    settings.REDIS_URL = live_redis
    live.client.cache_clear()
    http_times.flush()
    assert http_times.lately()["page"].requests == 1


def test_a_part_says_since_when(live_redis: str) -> None:
    assert part("backups").since is None
    selectors.note_states()
    PartState.objects.update(since=now() - timedelta(hours=1))
    selectors.note_states()
    assert part("backups").since == PartState.objects.get(name="backups").since
    PartState.objects.filter(name="backups").update(state="failed")
    assert part("backups").since is None, "it is in another state now"
    selectors.note_states()
    since = part("backups").since
    assert since is not None
    assert now() - since < timedelta(minutes=1)


@pytest.mark.both_engines
def test_every_part_is_asked_on_both_engines(live_redis: str, operator: Actor) -> None:
    found = {each.name: each for each in selectors.parts()}
    assert (found["database"].state, found["schema"].state, found["key"].state) == (State.OK, State.OK, State.OK)
    assert all(each.message and (each.remedy or each.state in (State.OK, State.UNKNOWN)) for each in found.values())
    assert database.locks().state in (State.OK, State.UNKNOWN)


def test_certificates_that_end_are_said_before(settings: Settings, tmp_path: Path, db: None) -> None:
    import datetime as dt

    from apps.fleet import pki

    settings.AGENT_CA_FILE = settings.AGENT_CERTIFICATE_FILE = str(tmp_path / "a.pem")
    settings.AGENT_KEY_FILE = str(tmp_path / "a.key")
    assert machine.certificates().state == State.FAILED
    authority = pki.make_authority(dt.datetime.now(dt.UTC))
    (tmp_path / "a.key").write_bytes(authority.key)
    for days, state in ((90, State.OK), (20, State.WARNING), (3, State.FAILED), (-1, State.FAILED)):
        made = pki.issue(
            authority, "x", client=True, now=dt.datetime.now(dt.UTC) - timedelta(days=100), days=100 + days
        )
        (tmp_path / "a.pem").write_bytes(made.certificate)
        assert machine.certificates().state == state


def test_a_console_needs_certificates_of_its_own_only_for_nodes_that_were_never_enrolled(
    settings: Settings, db: None
) -> None:
    settings.AGENT_CA_FILE = settings.AGENT_CERTIFICATE_FILE = ""
    node = make_env().nodes[0]
    assert machine.certificates().state == State.OK
    Node.objects.filter(pk=node.pk).update(url="https://192.0.2.1:9440")
    assert machine.certificates().message == "None is named; nodes that were never enrolled: 1."
    NodeCertificate.objects.create(
        node=node, node_name=node.name, sha256="a" * 64, issued_at=now(), ends_at=now() + timedelta(days=30)
    )
    assert machine.certificates().state == State.OK


SECRETS = {
    "SPILLWAY_SECRET_KEY": 'key-"with"-quotes-Zk3v9q',
    "SPILLWAY_TOKEN_PEPPERS": "2:pepper-Yt5w2,1:older-pepper-Rr4x",
    "SPILLWAY_DATABASE_URL": "postgresql://spillway:db%40pass-Qm1n@db.example/spillway",
    "SPILLWAY_REDIS_URL": "redis://:redis-pass-Lp8k@redis.example:6379/0",
    "SPILLWAY_EMAIL_URL": "smtp://mailer:mail-pass-Jh7g@mail.example:25",
    "SPILLWAY_OIDC_CLIENT_SECRET": "oidc-secret-Bv6c",
    "SPILLWAY_CLOUD_MAIN_SECRET_ACCESS_KEY": "cloud-secret-Nx2z",
    "AWS_SECRET_ACCESS_KEY": "aws-secret-Wd5s",
}
PLAIN = (
    "Zk3v9q",
    "Yt5w2",
    "Rr4x",
    "Qm1n",
    "Lp8k",
    "Jh7g",
    "Bv6c",
    "Nx2z",
    "Wd5s",
    "Fg4h",
    "Tt9u",
    "Vb3n",
    "Cc7x",
    "Ss1d",
)


def test_no_secret_is_in_the_bundle_wherever_it_was(
    operator: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live_redis: str
) -> None:
    from controlplane.admin import environment_file, findings

    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    Webhook.objects.create(
        account=operator.account, name="w", url="https://u:hook-Fg4h@x.example", secret=seal(b"Tt9u")
    )
    text = " ".join(
        [
            *SECRETS.values(),
            "https://u:hook-Fg4h@x.example",
            "db@pass-Qm1n",
            "Authorization: Bearer abc.Vb3n-def",
            "password=Cc7x-long",
        ]
    )
    text += "\n-----BEGIN PRIVATE KEY-----\nSs1d\n-----END PRIVATE KEY-----"
    handler = recent_errors.RecentErrors()
    handler.emit(logging.LogRecord("x", logging.ERROR, "", 0, text, (), None))
    heartbeat.beat("web", first=True)
    Condition.objects.create(object_kind="node", object_id=1, type="Up", reason="x", message=text[:900], since=now())
    path = tmp_path / "bundle.tar.gz"
    checks = [each.document() for each in findings.all_of_them()]
    bundle.write(path, findings.settings_shown(), checks, environment_file.secrets_of(tmp_path / "none"))
    found = ""
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            stream = archive.extractfile(member)
            assert stream is not None
            json.loads(content := stream.read().decode())
            found += content
    assert [secret for secret in PLAIN if secret in found] == []
    assert "[removed]" in found
    assert path.stat().st_mode & 0o777 == 0o600
    assert {"web", "Certificates of the console"} <= set(found.split('"')), "it says something all the same"


@pytest.mark.exhaustive
def test_control_a_bundle_that_is_not_cleaned_holds_them(
    operator: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live_redis: str
) -> None:
    monkeypatch.setattr(bundle, "clean", lambda text, _: text)
    Condition.objects.create(object_kind="node", object_id=1, type="Up", reason="x", message="Zk3v9q", since=now())
    bundle.write(tmp_path / "b.tar.gz", {}, [], [])
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        stream = archive.extractfile("spillway-support/conditions.json")
        assert stream is not None
        assert b"Zk3v9q" in stream.read()


@pytest.mark.parametrize("text", ["the pool is full", "https://console.example/pools", "node eu-1: 3 of 4 up"])
def test_plain_words_stay(text: str) -> None:
    assert clean(text, ["something-else"]) == text


def test_the_command_of_a_clone_runs_from_anywhere(tmp_path: Path) -> None:
    command = [str(Path(__file__).parents[2] / "deploy" / "spillway-admin"), "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "support-bundle" in done.stdout


def test_settings_are_judged_before_there_is_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    from controlplane.admin import findings

    monkeypatch.setenv("SPILLWAY_BIND", ":443 ssl crt /etc/spillway/tls.pem")
    assert [each.state for each in findings.of_settings()] == ["ok"]
    monkeypatch.setenv("SPILLWAY_LOG_LEVELS", "INFO")
    assert [(each.name, each.state) for each in findings.of_settings()] == [("SPILLWAY_LOG_LEVELS", "failed")]


def test_settings_are_read_from_a_pipe_before_they_are_written_anywhere() -> None:
    command = [sys.executable, "-m", "controlplane.admin", "--environment", "/dev/stdin", "check", "--settings"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])}
    text = "SPILLWAY_LOG_LEVEL=loud\n"
    done = subprocess.run(command, env=environment, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "failed   Settings: Set SPILLWAY_LOG_LEVEL to" in done.stdout
