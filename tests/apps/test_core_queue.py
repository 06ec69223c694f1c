"""Workers and open pages are told of a change once it is committed, and never of one that was undone."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from apps.core import events, queue
from tests.e2e.installation import broker


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)  # the commit is what is asked about
def test_who_waits_for_a_change_is_told_after_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[object, bool]] = []
    monkeypatch.setattr(queue, "enqueue", lambda task, *_: told.append((task, connection.in_atomic_block)))
    monkeypatch.setattr(events, "publish", lambda topic, **_: told.append((topic, connection.in_atomic_block)))
    for undone in (True, False):
        with transaction.atomic():
            queue.enqueue_on_commit("reconcile", 1)
            events.publish_after_commit("definitions")
            transaction.set_rollback(undone)
    assert told == [("reconcile", False), ("definitions", False)]


def test_a_broker_that_is_away_fails_no_write() -> None:
    with broker("redis://127.0.0.1:1/0"):
        assert queue.enqueue("apps.rollouts.tasks.sweep") is False
