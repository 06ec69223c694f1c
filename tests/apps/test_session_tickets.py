"""Secrets of session tickets: when they are renewed, who gets them, and that nobody is shown them."""

from __future__ import annotations

import json
import logging
from datetime import timedelta

import pytest

from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Unavailable
from apps.core.secrets import keys
from apps.core.secrets.sealing import unseal
from apps.drivers.proxy.memory import MemoryNode
from apps.fleet.models import Fleet, Node
from apps.observe import metrics
from apps.observe import services as observe
from apps.observe.models import NodeReport
from apps.rollouts import tickets
from apps.rollouts.models import Revision, TicketSecrets
from apps.rollouts.push.revision_store import bundle_of
from tests.apps.pushed import Env, put_env, remembered

pytestmark = pytest.mark.django_db

RUNNING = remembered(lambda env: env.reconcile())


@pytest.fixture
def env() -> Env:
    return put_env(RUNNING)


def report(env: Env) -> None:
    """What the collector does: ask every node what it has."""
    for pk, node in zip(Node.objects.order_by("name").values_list("pk", flat=True), env.memory, strict=True):
        observe.note_report(node_id=pk, state=node.state())


def bring(env: Env) -> None:
    tickets.bring(fleet_id=env.fleet.pk)
    report(env)


def older(hours: float) -> None:
    row = TicketSecrets.objects.get()
    TicketSecrets.objects.update(renewed_at=row.renewed_at - timedelta(hours=hours))


def secrets_of(node: MemoryNode) -> tuple[str, ...]:
    return node.ticket_secrets


def test_all_nodes_of_a_fleet_get_the_same_three_and_are_then_left_alone(env: Env) -> None:
    assert tickets.fleets_to_sweep(now()) == [env.fleet.pk]
    bring(env)
    first, second = map(secrets_of, env.memory)
    assert first == second
    assert len(set(first)) == 3
    assert all(len(bytes.fromhex(each)) == 32 for each in first)
    assert tickets.fleets_to_sweep(now()) == []
    bring(env)
    assert secrets_of(env.memory[0]) == first


def test_each_is_next_then_current_then_previous_then_gone(env: Env) -> None:
    bring(env)
    _, current, following = secrets_of(env.memory[0])
    older(11.9)
    assert tickets.fleets_to_sweep(now()) == []
    bring(env)
    assert secrets_of(env.memory[0])[1:] == (current, following)
    older(0.2)
    assert tickets.fleets_to_sweep(now()) == [env.fleet.pk]
    bring(env)
    assert secrets_of(env.memory[0])[:2] == (current, following)
    older(24.5)
    bring(env)
    assert secrets_of(env.memory[1])[0] not in (current, following)
    kept = set(secrets_of(env.memory[1]))
    older(1000)
    bring(env)
    assert not kept & set(secrets_of(env.memory[1]))


def test_who_was_away_gets_them_when_it_is_back(env: Env) -> None:
    env.memory[1].unreachable = True
    tickets.bring(fleet_id=env.fleet.pk)
    assert secrets_of(env.memory[0]) != secrets_of(env.memory[1])
    env.memory[1].unreachable = False
    report(env)
    assert tickets.fleets_to_sweep(now()) == [env.fleet.pk]
    bring(env)
    assert secrets_of(env.memory[0]) == secrets_of(env.memory[1])


def test_agents_that_know_of_no_tickets_and_nodes_nobody_heard_of_are_not_asked(env: Env) -> None:
    NodeReport.objects.update(ticket_secrets="")
    assert tickets.fleets_to_sweep(now()) == []
    tickets.bring(fleet_id=env.fleet.pk)
    assert not TicketSecrets.objects.exists()
    report(env)
    NodeReport.objects.update(seen_at=now() - timedelta(minutes=5))
    assert tickets.fleets_to_sweep(now()) == []


def test_fleets_have_their_own(env: Env) -> None:
    bring(env)
    other = Fleet.objects.create(name="other", region=env.fleet.region, account=env.fleet.account)
    Node.objects.filter(name="n2").update(fleet=other)
    tickets.bring(fleet_id=other.pk)
    assert not set(secrets_of(env.memory[0])) & set(secrets_of(env.memory[1]))


def test_they_are_sealed_and_in_no_revision_audit_entry_metric_or_log(
    env: Env, caplog: pytest.LogCaptureFixture
) -> None:
    env.memory[1].unreachable = True
    with caplog.at_level(logging.DEBUG):
        tickets.bring(fleet_id=env.fleet.pk)
    secret = secrets_of(env.memory[0])[1]
    row = TicketSecrets.objects.get()
    assert secret in json.loads(unseal(row.sealed))
    assert secret.encode() not in bytes(row.sealed)
    assert "session tickets" in caplog.text  # the one that is away is named, by its name
    assert secret not in caplog.text
    assert not any(secret in str(entry.before) + str(entry.after) for entry in Entry.objects.all())
    for revision in Revision.objects.all():
        assert not any(secret.encode() in text for text in bundle_of(revision.pk, revision.digest).files.values())
    shown = metrics.text()
    assert b'spillway_ticket_secrets_age_seconds{fleet="here"}' in shown
    assert secret.encode() not in shown


def test_a_key_that_is_lost_costs_the_tickets_alone_and_a_wrong_one_nothing(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(env)
    TicketSecrets.objects.update(sealed=b"sealed by somebody else")
    before = TicketSecrets.objects.get().digest

    def must_fit() -> None:
        raise Unavailable("wrong key", 1)

    monkeypatch.setattr(tickets, "must_fit", must_fit)
    with pytest.raises(Unavailable):
        tickets.bring(fleet_id=env.fleet.pk)
    assert TicketSecrets.objects.get().digest == before
    monkeypatch.setattr(tickets, "must_fit", keys.must_fit)
    bring(env)
    assert TicketSecrets.objects.get().digest != before
    assert env.memory[0].ticket_secrets == env.memory[1].ticket_secrets
