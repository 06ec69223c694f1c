"""/readyz compares the tables with the models, column by column, and believes what was right for a minute."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.observe import schema

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines, pytest.mark.urls("apps.observe.urls")]


@pytest.fixture(autouse=True)
def _asked_again() -> Iterator[None]:
    schema.ask_again()
    yield
    schema.ask_again()


def sql(*statements: str) -> None:
    with connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)


def database(client: Client) -> tuple[int, str]:
    answer = client.get("/readyz")
    return answer.status_code, answer.json()["parts"]["database"]


def test_all_tables_are_those_of_the_code(client: Client) -> None:
    assert schema.compare(connection) == ([], [])
    assert database(client) == (200, "ok")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "ALTER TABLE observe_console DROP COLUMN clock_ahead_ms",
            "observe_console.clock_ahead_ms",
        ),
        ("DROP TABLE observe_collectorlease", "observe_collectorlease.holder"),
        (
            "ALTER TABLE observe_console RENAME COLUMN heard_at TO heard",
            "observe_console.heard_at",
        ),
    ],
)
def test_a_table_that_differs_is_not_ready_although_its_migrations_ran(
    client: Client, statement: str, said: str
) -> None:
    sql(statement)
    status, words = database(client)
    assert status == 503
    assert words.startswith(f"columns are missing: {said}")
    assert "Restore a backup" in words


def test_a_database_of_newer_code_is_refused_with_a_sentence(client: Client) -> None:
    sql("INSERT INTO django_migrations (app, name, applied) VALUES ('observe', '9999_of_tomorrow', CURRENT_TIMESTAMP)")
    status, words = database(client)
    assert status == 503
    assert words == "The database is newer than this code: it has observe.9999_of_tomorrow, which is not here."


def test_a_column_that_only_the_database_demands_is_of_newer_code(client: Client) -> None:
    sql("DROP TABLE observe_console", "CREATE TABLE observe_console (id bigint PRIMARY KEY, name text, "
        "clock_ahead_ms bigint, heard_at text, of_tomorrow text NOT NULL)")  # fmt: skip
    assert "demands columns that this code does not know: observe_console.of_tomorrow" in database(client)[1]


def test_what_was_right_costs_no_query_again(client: Client) -> None:
    with CaptureQueriesContext(connection) as first:
        assert schema.is_current() == "ok"
    with CaptureQueriesContext(connection) as second:
        assert schema.is_current() == "ok"
    assert (len(first) <= 4, len(second)) == (True, 0)
