"""The pages SQL and settings of the request log: whose lines, who may, what is shown, and what is typed wrong."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.core.clock import now
from apps.drivers.logs.contract import LogStore, SqlAnswer
from apps.drivers.logs.registry import open_logs
from apps.logs.models import LogSettings
from apps.web.requests import sql
from tests.conformance.log_places import needs_duckdb
from tests.interfaces.people import client_of
from tests.interfaces.web.test_pages_requests import line, shown


@pytest.fixture
def files(settings: Settings, tmp_path: Path) -> Iterator[LogStore]:
    settings.LOGS_URL = f"logs+file://{tmp_path}"
    opened = open_logs(settings.LOGS_URL)
    yield opened
    opened.close()  # type: ignore[attr-defined] # of files


@needs_duckdb
@pytest.mark.slow(reason="a process for each statement")
@pytest.mark.usefixtures("acme", "globex")
def test_a_statement_is_run_over_ones_own_lines_of_the_window(files: LogStore, acme: Actor, globex: Actor) -> None:
    files.store("one", [line(acme.account.pk, 1, path="/<b>"), line(globex.account.pk, 2, path="/of-globex")])
    client, text = client_of(acme), "SELECT path, count(*) AS n FROM requests GROUP BY ALL"
    found = client.post("/requests/sql", {"sql": text, "last": "1h", "from": "nonsense"}).content.decode()
    assert "/&lt;b&gt;" in found
    assert "of-globex" not in found
    answer = client.post("/requests/sql", {"sql": text, "last": "1h", "as": "csv"})
    assert list(csv.reader(io.StringIO(answer.content.decode()))) == [["path", "n"], ["/<b>", "1"]]
    for _, example in sql.EXAMPLES:
        assert client.post("/requests/sql", {"sql": example, "last": "1h"}).status_code == 200, example
    for wrong, said in (
        ("SELECT nothing_such FROM requests", "nothing_such"),
        ("SELECT * FROM read_text('/etc/passwd')", "read_text cannot be read from"),
        ("DROP VIEW requests", "only SELECT"),
    ):
        answer = client.post("/requests/sql", {"sql": wrong, "last": "1h"})
        assert answer.status_code == 422
        assert said in answer.content.decode()
        assert "Binder Error" not in answer.content.decode()


@pytest.mark.usefixtures("acme")
def test_an_address_carries_a_statement_and_does_not_run_it(acme: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.logs.selectors.sql", lambda *_, **__: pytest.fail("it was run"))
    assert "SELECT 17" in shown(client_of(acme), "/requests/sql?sql=SELECT+17")


def test_a_page_shows_some_rows_and_the_csv_all_with_no_formula(acme: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(("=1+1", None, {"a": [1]}, "x" * 5000) for _ in range(sql.SHOWN + 5))
    answer = SqlAnswer(("a", "b", "c", "=d"), rows, truncated=True)
    monkeypatch.setattr("apps.logs.selectors.sql", lambda *_, **__: answer)
    client, asked = client_of(acme), {"sql": "SELECT 1", "last": "1h"}
    text = client.post("/requests/sql", asked).content.decode()
    assert text.count("x" * sql.LONGEST_CELL) == sql.SHOWN
    assert "x" * (sql.LONGEST_CELL + 1) not in text
    assert "There are more rows" in text
    found = list(csv.reader(io.StringIO(client.post("/requests/sql", asked | {"as": "csv"}).content.decode())))
    assert len(found) == 1 + len(rows)
    assert found[0][3] == "'=d"
    assert found[1][:3] == ["'=1+1", "", '{"a": [1]}']


def test_viewers_find_no_sql_no_archive_and_no_button(acme: Actor) -> None:
    viewer = client_of(acme, Membership.Role.VIEWER)
    for address in ("/requests/sql", "/requests/archive.jsonl.gz", "/requests/archive.parquet"):
        assert viewer.get(address).status_code == 403, address
    assert "/requests/sql" not in shown(viewer, "/requests")
    assert "Delete lines" not in shown(viewer, "/requests/settings")


def test_settings_are_saved_in_the_version_that_was_seen(acme: Actor) -> None:
    client, fields = client_of(acme), {"/spec/retention_days": "30", "/spec/mask_addresses": "on", "version": "1"}
    assert "passwd, password, pwd" in shown(client, "/requests/settings")
    fields["/spec/mask_values_of"] = "token,\n Api-Key , token"
    wrong = client.post("/requests/settings", fields | {"/spec/mask_values_of": "token, a=b"})
    assert "Change “a=b”: a name is letters" in wrong.content.decode()
    assert client.post("/requests/settings", fields).status_code == 302
    row = LogSettings.objects.get(account=acme.account)
    assert (row.retention_days, row.mask_addresses, row.mask_values_of) == (30, True, ["api-key", "token"])
    stale = client.post("/requests/settings", fields | {"/spec/retention_days": "7"})
    assert stale.status_code == 422
    assert "Not saved" in stale.content.decode()
    assert client.post("/requests/settings", fields | {"account": "globex"}).status_code == 404


def test_an_archive_has_the_lines_of_its_window(acme: Actor, globex: Actor, settings: Settings) -> None:
    store = open_logs(settings.LOGS_URL)
    store.store("one", [line(acme.account.pk, 1, path="/mine"), line(globex.account.pk, 2, path="/of-globex")])
    found = b"".join(client_of(acme).get("/requests/archive.jsonl.gz"))
    assert b"/mine" in gzip.decompress(found)
    assert b"of-globex" not in gzip.decompress(found)
    refused = client_of(acme).get("/requests/archive.jsonl.gz?q=stauts:3")
    assert (refused.status_code, refused["Content-Type"]) == (422, "text/plain; charset=utf-8")


def test_lines_are_deleted_once_the_name_was_typed(acme: Actor, globex: Actor, settings: Settings) -> None:
    store, client = open_logs(settings.LOGS_URL), client_of(acme)
    old = now() - timedelta(hours=5)
    store.store("one", [line(each.account.pk, 1, time=old) for each in (acme, globex)])
    fields = {"account": "acme", "before": (now() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M"), "confirm": "acm"}
    client.post("/requests/delete", fields)
    assert store.usage(acme.account.pk).lines == 1
    client.post("/requests/delete", fields | {"confirm": "acme"})
    assert (store.usage(acme.account.pk).lines, store.usage(globex.account.pk).lines) == (0, 1)
    for wrong in ("", "yesterday", "2999-01-01T00:00"):
        answer = client.post("/requests/delete", fields | {"confirm": "acme", "before": wrong}, follow=True)
        assert "time" in answer.content.decode()
    assert client.post("/requests/delete", fields | {"account": "globex", "confirm": "globex"}).status_code == 404
