"""The audit log: nothing is changed or deleted, every entry is linked, and whatever happens to a row is seen."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from apps.accounts.actors import Actor
from apps.audit import chain
from apps.audit.models import AppendOnly, Entry
from apps.audit.services import record
from apps.core import requests
from apps.core.requests import ChangeOrigin
from tests.apps.at_once import at_once

Tampering = Callable[[], object]


def add(actor: Actor, number: int) -> Entry:
    """One entry with all sorts of values in it."""
    after = {"weight": number, "ratio": 0.1 + number, "whole": 2.0, "text": "Zürich 😀", "list": [None, True, {}]}
    return record(
        actor=actor, action="update", kind="Pool", object_id=number, label=f"acme/pool-{number}", after=after, version=1
    )


@pytest.fixture
def linked(operator: Actor) -> list[Entry]:
    """Five entries, linked."""
    for number in range(5):
        add(operator, number)
    assert chain.link_pending() == 5
    return list(Entry.objects.order_by("position"))


@contextmanager
def without_triggers() -> Iterator[None]:
    """As somebody would work who owns the database."""
    if connection.vendor == "postgresql":
        sql("SET LOCAL session_replication_role = replica")
        yield
        sql("SET LOCAL session_replication_role = origin")
    else:
        sql("DROP TRIGGER audit_entry_no_update")
        yield


def sql(statement: str, *values: str | int | None) -> None:
    """Run one statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def test_links_have_no_gaps_and_each_digest_covers_the_one_before(linked: list[Entry]) -> None:
    assert [row.position for row in linked] == [1, 2, 3, 4, 5]
    assert [row.previous for row in linked] == [chain.BEGINNING, *(row.digest for row in linked[:-1])]
    assert len({row.digest for row in linked}) == 5
    assert chain.verify() == chain.Verdict(chain.Head(5, linked[-1].digest), 0)


def test_an_empty_record_is_whole_and_entries_without_a_link_are_counted(operator: Actor) -> None:
    assert chain.verify() == chain.Verdict(chain.Head(0, chain.BEGINNING), 0)
    add(operator, 1)
    assert chain.verify().waiting == 1


@pytest.mark.both_engines
def test_a_long_record_is_linked_in_turns(operator: Actor) -> None:
    for number in range(7):
        add(operator, number)
    assert [chain.link_pending(limit=3) for _ in range(4)] == [3, 3, 1, 0]
    assert chain.verify().head.position == 7


def change_a_field() -> None:
    sql("UPDATE audit_entry SET reason = 'nothing to see' WHERE position = 3")


def change_a_nested_value() -> None:
    sql("UPDATE audit_entry SET after = %s WHERE position = 3", '{"weight": 99}')


def change_and_mend_the_digest() -> None:
    row = Entry.objects.get(position=3)
    row.reason = "nothing to see"
    sql("UPDATE audit_entry SET reason = %s, digest = %s WHERE position = 3", row.reason, chain.digest_of(row))


def remove_a_row() -> None:
    sql("DELETE FROM audit_entry WHERE position = 3")


def remove_and_close_the_gap() -> None:
    remove_a_row()
    sql("UPDATE audit_entry SET position = 3 WHERE position = 4")
    sql("UPDATE audit_entry SET position = 4 WHERE position = 5")


def insert_a_row() -> None:
    for position in (5, 4, 3):
        sql("UPDATE audit_entry SET position = %s WHERE position = %s", position + 1, position)
    row = Entry.objects.get(position=2)
    row.pk, row.position, row.previous, row._state.adding = None, 3, row.digest, True
    row.save()
    row.refresh_from_db()
    sql("UPDATE audit_entry SET digest = %s WHERE position = 3", chain.digest_of(row))


def swap_two_rows() -> None:
    for old, new in ((3, 99), (4, 3), (99, 4)):
        sql("UPDATE audit_entry SET position = %s WHERE position = %s", new, old)


@pytest.mark.parametrize(
    ("tamper", "broken_at"),
    [
        (change_a_field, 3),
        (change_a_nested_value, 3),
        (change_and_mend_the_digest, 4),
        (remove_a_row, 3),
        (remove_and_close_the_gap, 3),
        (insert_a_row, 4),
        (swap_two_rows, 3),
    ],
)
def test_whatever_is_done_to_a_row_is_seen_at_the_first_position_that_is_wrong(
    linked: list[Entry], tamper: Tampering, broken_at: int
) -> None:
    with without_triggers():
        tamper()
    assert chain.verify().broken_at == broken_at
    with pytest.raises(CommandError, match=f"position {broken_at}"):
        call_command("verify_audit")


def test_a_cut_tail_is_seen_by_whoever_kept_a_digest(linked: list[Entry]) -> None:
    kept = linked[3]
    assert chain.verify(start=4, expected=kept.digest).broken_at is None
    with without_triggers():
        sql("DELETE FROM audit_entry WHERE position > 3")
    assert chain.verify().broken_at is None  # the rest by itself is whole: hence the digest
    assert chain.verify(start=4, expected=kept.digest).broken_at == 4
    with pytest.raises(CommandError, match="position 4"):
        call_command("verify_audit", from_position=4, expect_digest=kept.digest)


def test_a_chain_that_was_written_anew_is_seen_by_whoever_kept_a_digest(linked: list[Entry]) -> None:
    with without_triggers():
        sql("UPDATE audit_entry SET reason = 'another' WHERE position = 1")
        sql("UPDATE audit_entry SET position = NULL, previous = '', digest = ''")
    chain.link_pending()
    assert chain.verify().broken_at is None
    assert chain.verify(start=5, expected=linked[4].digest).broken_at == 5


def test_verify_says_how_many_entries_and_the_head(linked: list[Entry], capsys: pytest.CaptureFixture[str]) -> None:
    call_command("verify_audit")
    assert capsys.readouterr().out.strip() == f"5 entries, chain whole, head {linked[-1].digest}."


@pytest.mark.parametrize("options", [{"expect_digest": "x" * 64, "from_position": 1}, {"expect_digest": "0" * 64}])
def test_verify_refuses_a_question_that_makes_no_sense(db: None, options: dict[str, object]) -> None:
    with pytest.raises(CommandError):
        call_command("verify_audit", **options)


@pytest.mark.both_engines
def test_the_model_refuses_to_change_or_delete(linked: list[Entry]) -> None:
    for attempt in (
        linked[0].save,
        linked[0].delete,
        Entry.objects.all().delete,
        lambda: Entry.objects.filter(pk=linked[0].pk).update(reason="x"),
        lambda: Entry.objects.bulk_update(linked, ["reason"]),
    ):
        with pytest.raises(AppendOnly):
            attempt()


@pytest.mark.both_engines
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM audit_entry WHERE position = 1",
        "DELETE FROM audit_entry WHERE position IS NULL",
        "UPDATE audit_entry SET reason = 'x' WHERE position = 1",
        "UPDATE audit_entry SET digest = 'x' WHERE position = 1",
        "UPDATE audit_entry SET reason = 'x' WHERE position IS NULL",
        "UPDATE audit_entry SET position = 9, reason = 'x' WHERE position IS NULL",
        "UPDATE audit_entry SET position = NULL WHERE position = 1",
    ],
)
def test_the_database_refuses_to_change_or_delete(linked: list[Entry], operator: Actor, statement: str) -> None:
    add(operator, 9)
    if connection.vendor == "sqlite":
        sql(importlib.import_module("apps.audit.migrations.0001_initial").SQLITE_DELETE.replace("%", "%%"))
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        sql(statement)
    assert Entry.objects.count() == 6
    assert chain.link_pending() == 1  # a link may be filled in all the same


def test_an_entry_says_from_which_request_commit_and_pipeline_it_came(operator: Actor) -> None:
    requests.set_change_origin(ChangeOrigin("abc1234", "https://ci.example/1"))
    try:
        entry = add(operator, 1)
    finally:
        requests.set_change_origin(ChangeOrigin())
    assert (entry.commit, entry.pipeline_url) == ("abc1234", "https://ci.example/1")
    assert add(operator, 2).commit == ""


@pytest.mark.both_engines
def test_the_sweep_links_what_was_committed_and_never_what_was_taken_back(operator: Actor) -> None:
    with transaction.atomic():
        for number in range(3):
            add(operator, number)
    assert not Entry.objects.exclude(position=None).exists()
    assert chain.link_pending() == 3
    with transaction.atomic():
        add(operator, 4)
        transaction.set_rollback(True)
    assert (chain.link_pending(), Entry.objects.count(), chain.verify().broken_at) == (0, 3, None)


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_many_writers_at_once_leave_one_whole_chain(operator: Actor) -> None:
    def write(start: int) -> None:
        for number in range(5):
            with transaction.atomic():
                add(operator, start + number)

    at_once(*(partial(write, 100 * number) for number in range(6)))
    while chain.link_pending():
        continue
    verdict = chain.verify()
    assert (verdict.head.position, verdict.waiting, verdict.broken_at) == (30, 0, None)
