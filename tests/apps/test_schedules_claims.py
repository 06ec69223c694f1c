"""A run that one worker is just taking is left alone by all others."""

from __future__ import annotations

import threading

import pytest
from django.db import transaction

from apps.accounts.actors import Actor
from apps.schedules.models import ScheduleRun
from apps.schedules.run import claims
from tests.apps.at_once import PATIENCE_S, at_once, wait_for
from tests.apps.schedules_env import a_schedule, book_all


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_of_two_workers_at_once_one_takes_a_run(acme: Actor) -> None:
    a_schedule(acme)
    book_all()
    first_has_taken, second_is_done = threading.Event(), threading.Event()

    def first() -> list[ScheduleRun]:
        with transaction.atomic():
            found = claims.take(["webhook"])
            first_has_taken.set()
            wait_for(second_is_done)
        return found

    def second() -> list[ScheduleRun]:
        first_has_taken.wait(PATIENCE_S)
        found = claims.take(["webhook"])
        second_is_done.set()
        return found

    taken = at_once(first, second)
    assert [len(found) for found in taken] == [ScheduleRun.objects.count(), 0]
    assert taken[0]
