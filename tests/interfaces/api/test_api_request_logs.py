"""Request lines through the API: one's own, found by filters, and mistakes that are named."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from django.conf import settings as django_settings
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.cli.client.commands import watching
from apps.core.clock import now
from apps.drivers.logs.contract import Busy, LogStore, Record, TooLarge
from apps.drivers.logs.registry import open_logs
from apps.logs import searching
from apps.logs.collect.masking import SECRETS
from apps.logs.models import NodeLog
from apps.observe.models import NodeReport
from tests.apps.observe_env import make_env
from tests.conformance.log_places import needs_duckdb
from tests.conftest import actor_of
from tests.interfaces.api.test_api_objects import Api, assert_problem
from tests.interfaces.people import client_of

KNOWN = "0123456789ab7abc8123456789abcde{}"


@pytest.fixture
def api(acme: Actor, globex: Actor) -> Api:
    """Acme's program, in whose log are four lines, beside one of Globex."""
    return Api(acme)


@pytest.fixture
def lines(acme: Actor, globex: Actor) -> None:
    at = now() - timedelta(minutes=30)

    def line(number: int, account: int, **said: object) -> Record:
        usual = {"node": "n1", "fleet": "here", "load_balancer": "front", "listener": "http", "status": 200}
        moment = at.replace(microsecond=0) + timedelta(seconds=number)
        return Record(time=moment, id=KNOWN.format(number), account=account, **{**usual, **said})  # type: ignore[arg-type]

    own = acme.account.pk
    batch = [
        line(1, own, route="shop", path="/1"),
        line(2, own, route="shop", status=503, path="/2", headers={"X-Ü": 'a"b\n'}),
        line(3, own, route="api", status=500, path="/3", total_ms=1500, termination="sH"),
        line(4, own, kind="connection", status=None),
        line(5, globex.account.pk, route="secret"),
    ]
    open_logs(django_settings.LOGS_URL).store("n1-aa-1", batch)


def get(api: Api, part: str = "", **query: str) -> str:
    return f"request-logs{part}?{urlencode(query)}"


@pytest.mark.usefixtures("lines")
def test_lines_are_found_by_a_filter_page_by_page(api: Api) -> None:
    found = api("GET", get(api, filter="status>=500 -path:/9")).json()
    assert [each["path"] for each in found["items"]] == ["/3", "/2"]
    assert found["items"][1]["headers"] == {"X-Ü": 'a"b\n'}
    assert found["items"][0]["account"] == "acme"
    endings = [(each["termination"], each["ended"]) for each in found["items"]]
    assert endings == [("sH", "The server was silent for too long before the response began."), ("", "")]
    assert found["next_cursor"] is None
    first = api("GET", get(api, limit="3")).json()
    rest = api("GET", get(api, limit="3", cursor=first["next_cursor"])).json()
    assert [each["id"][-1] for each in first["items"] + rest["items"]] == ["4", "3", "2", "1"]
    assert api("GET", get(api, until="2020-01-01T00:00:00Z")).json()["items"] == []


@pytest.mark.usefixtures("lines")
def test_one_line_counts_and_facets(api: Api) -> None:
    assert api("GET", f"request-logs/{KNOWN.format(3)}").json()["total_ms"] == 1500
    bins = api("GET", get(api, "/histogram", bins="10", filter="route:shop,api")).json()
    assert sum(each["counts"]["5xx"] for each in bins["bins"]) == 2
    assert sum(sum(each["counts"].values()) for each in bins["bins"]) == 3
    facets = api("GET", get(api, "/facets", fields="route,status")).json()["facets"]
    assert facets[0] == {
        "field": "route",
        "values": [{"value": "shop", "lines": 2}, {"value": "", "lines": 1}, {"value": "api", "lines": 1}],
    }


@pytest.mark.usefixtures("lines")
def test_nobody_sees_lines_of_another_account_and_operators_say_whose(api: Api, globex: Actor, operator: Actor) -> None:
    assert_problem(api("GET", f"request-logs/{KNOWN.format(5)}"), 404)
    for part in ("", "/histogram", "/facets", "/settings"):
        assert_problem(api("GET", get(api, part, account="globex")), 422)
    assert [each["route"] for each in Api(globex)("GET", "request-logs").json()["items"]] == ["secret"]
    house = Api(operator)
    assert house("GET", "request-logs").json()["items"] == []
    assert [each["route"] for each in house("GET", get(house, account="globex")).json()["items"]] == ["secret"]


@pytest.mark.parametrize(
    ("part", "query", "pointer"),
    [
        ("", {"filter": "stauts:5"}, "/filter"),
        ("", {"filter": 'path:"'}, "/filter"),
        ("", {"filter": "account:globex"}, "/filter"),
        ("", {"since": "yesterday"}, "/since"),
        ("", {"since": "2026-01-01T00:00:00"}, "/since"),
        ("", {"since": "2020-01-01T00:00:00Z"}, "/since"),
        ("", {"until": "2020-01-01T00:00:00Z", "since": "2021-01-01T00:00:00Z"}, "/until"),
        ("", {"until": "0001-01-01T00:00:00Z"}, "/until"),
        ("", {"since": "0001-01-01T00:00:00+14:00", "until": "0001-01-01T01:00:00+14:00"}, "/until"),
        ("", {"since": "9999-12-31T23:00:00-14:00", "until": "9999-12-31T23:30:00-14:00"}, "/until"),
        ("/histogram", {"since": "9999-12-31T23:00:00Z", "until": "9999-12-31T23:59:59Z"}, "/until"),
        ("", {"cursor": "x"}, "/cursor"),
        ("/histogram", {"bins": "0"}, "/bins"),
        ("/facets", {"fields": "headers"}, "/fields"),
        ("/facets", {"fields": "route); DROP TABLE x"}, "/fields"),
        ("/facets", {"fields": ""}, "/fields"),
    ],
)
def test_a_mistake_is_named(api: Api, part: str, query: dict[str, str], pointer: str) -> None:
    body = assert_problem(api("GET", get(api, part, **query)), 422)
    assert [each["pointer"] for each in body["errors"]] == [pointer]


@pytest.mark.slow(reason="a process for each statement")
@needs_duckdb
def test_sql_answers_over_ones_own_lines_and_not_for_viewers(api: Api, tmp_path: Path, settings: Settings) -> None:
    settings.LOGS_URL = f"logs+file://{tmp_path}"
    answer = api("POST", "request-logs:sql", {"sql": "SELECT count(*) AS n FROM requests"}).json()
    assert answer == {"columns": ["n"], "rows": [[0]], "truncated": False, "missing": ""}
    for sql in ("SELECT * FROM read_text('/etc/passwd')", "DROP VIEW requests", 7):
        body = assert_problem(api("POST", "request-logs:sql", {"sql": sql}), 422)
        assert [each["pointer"] for each in body["errors"]] == ["/sql"]
    viewer = Api(actor_of("acme", "customer", Membership.Role.VIEWER))
    assert_problem(viewer("POST", "request-logs:sql", {"sql": "SELECT 1"}), 403)
    assert viewer("GET", "request-logs").status_code == 200


def test_who_follows_by_command_misses_no_line_and_hears_how_many_were_too_many(
    api: Api, acme: Actor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at, batches = now().replace(microsecond=0) - timedelta(minutes=1), [range(3), range(3, 9), range(9, 30)]
    first = Record(at, "", "n1", "here", acme.account.pk, "front", "http")

    def more(_pause: float = 0) -> None:
        if not batches:
            raise KeyboardInterrupt
        lines = [
            replace(first, time=at + timedelta(milliseconds=100 * each), id=f"{each:032x}", path=f"/{each}")
            for each in batches.pop(0)
        ]
        open_logs(django_settings.LOGS_URL).store(f"n1-aa-{lines[0].path[1:]}", lines)

    def ask(method: str, path: str, query: dict[str, str]) -> object:
        return api(method, f"{path}?{urlencode(query)}").json()

    more()
    monkeypatch.setattr(watching, "time", SimpleNamespace(sleep=more))
    monkeypatch.setattr(watching, "PAGE", 4)
    monkeypatch.setattr(watching, "PAGES", 2)
    with pytest.raises(KeyboardInterrupt):
        watching.follow(ask, {"filter": "path:/*"})  # type: ignore[arg-type]
    shown = capsys.readouterr()
    assert [int(each) for each in re.findall(r"/(\d+)", shown.out)] == [*range(9), *range(22, 30)]
    assert shown.err.startswith("13 requests are left out")


def test_every_answer_says_as_the_page_does_which_lines_are_missing(api: Api, acme: Actor) -> None:
    at = now()
    for node, waiting_s in zip(make_env().nodes[:2], (0.0, 600.0), strict=True):
        NodeReport.objects.create(node=node, digest="d" * 64)
        NodeLog.objects.create(node=node, read_at=at, waiting_s=waiting_s)

    def said(until: str) -> set[str]:
        parts = ("", "/histogram", "/facets", "/patterns/uneven-servers")
        return {api("GET", get(api, part, until=until)).json()["missing"] for part in parts}

    words = "Request lines of 1 of 2 nodes are missing; they are counted when they come."
    assert said(at.isoformat()) == {words}
    window = urlencode({"from": (at - timedelta(hours=1)).isoformat(), "to": at.isoformat()})
    assert words in client_of(acme).get(f"/requests?{window}").content.decode()
    assert said((at - timedelta(minutes=11)).isoformat()) == {""}


@pytest.mark.parametrize(("error", "wait"), [(Busy("Too many."), "2"), (TooLarge("Too long."), None)])
def test_what_is_too_much_at_once_is_refused_with_the_time_to_ask_again(
    api: Api, acme: Actor, monkeypatch: pytest.MonkeyPatch, error: Exception, wait: str | None
) -> None:
    def taken(_url: str) -> LogStore:
        raise error

    monkeypatch.setattr(searching, "open_logs", taken)
    answers = (api("GET", get(api)), client_of(acme).get("/requests/export.csv"))
    assert_problem(answers[0], 503)
    assert [(each.status_code, each.get("Retry-After")) for each in answers] == [(503, wait)] * 2


def test_settings_are_changed_in_the_version_that_was_seen(api: Api) -> None:
    first = api("GET", "request-logs/settings")
    usual = {"retention_days": 14, "mask_addresses": False, "mask_values_of": list(SECRETS)}
    assert first.json()["spec"] == usual
    changed = api("PATCH", "request-logs/settings", {"spec": {"retention_days": 30}}, If_Match=first["ETag"])
    assert changed.json()["spec"] == usual | {"retention_days": 30}
    assert_problem(api("PATCH", "request-logs/settings", {"spec": {"retention_days": 3}}, If_Match=first["ETag"]), 412)
    hostile = [7, None, "token", [7], ["a b"], ["token="], [""], ["x" * 64], ["é"], ["a\x01"], ["token"] * 51]
    names = [{"mask_values_of": each} for each in hostile]
    for spec in ({"retention_days": 0}, {"retention_days": True}, {"mask_addresses": 1}, {"days": 3}, 7, *names):
        assert_problem(api("PATCH", "request-logs/settings", {"spec": spec}, If_Match="*"), 422)
    audited = api("GET", "audit-entries?kind=LogSettings").json()["items"]
    assert [each["after"]["retention_days"] for each in audited] == [30]
    own = {"spec": {"mask_values_of": ["Token", "api-key", "token"]}}
    changed = api("PATCH", "request-logs/settings", own, If_Match=changed["ETag"])
    assert changed.json()["spec"] == {**usual, "retention_days": 30, "mask_values_of": ["api-key", "token"]}


def test_an_archive_has_ones_own_lines_oldest_first_and_is_not_for_viewers(api: Api, lines: None) -> None:
    answer = api("GET", get(api, "/archive.jsonl.gz", filter="status>=500"))
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/gzip")
    found = [json.loads(each) for each in gzip.decompress(b"".join(answer)).splitlines()]
    assert [each["path"] for each in found] == ["/2", "/3"]
    assert_problem(api("GET", get(api, "/archive.jsonl.gz", account="globex")), 422)
    assert_problem(api("GET", get(api, "/archive.jsonl.gz", filter="stauts:5")), 422)
    viewer = Api(actor_of("acme", "customer", Membership.Role.VIEWER))
    assert_problem(viewer("GET", get(viewer, "/archive.jsonl.gz")), 403)


@needs_duckdb
@pytest.mark.slow(reason="a process that writes the archive")
def test_a_parquet_archive_can_be_read_by_whoever_reads_parquet(
    api: Api, acme: Actor, tmp_path: Path, settings: Settings
) -> None:
    import duckdb

    settings.LOGS_URL = f"logs+file://{tmp_path / 'store'}"
    moment = now() - timedelta(minutes=5)
    own = Record(time=moment, id="one", node="n1", fleet="f", account=acme.account.pk, load_balancer="l", listener="h")
    open_logs(settings.LOGS_URL).store("n1-aa-1", [own])
    answer = api("GET", get(api, "/archive.parquet"))
    target = tmp_path / "archive.parquet"
    target.write_bytes(b"".join(answer))
    assert duckdb.read_parquet(str(target)).project("id, node").fetchall() == [("one", "n1")]


def test_lines_before_a_time_are_deleted_by_admins_and_that_is_in_the_audit_log(api: Api, acme: Actor) -> None:
    old, new = now() - timedelta(hours=5), now() - timedelta(minutes=1)
    usual = {"node": "n1", "fleet": "f", "account": acme.account.pk, "load_balancer": "l", "listener": "h"}
    stored = [Record(time=each, id=str(number), **usual) for number, each in enumerate((old, new))]  # type: ignore[arg-type]
    other = Record(**{**usual, "time": old, "id": "2", "account": acme.account.pk + 1000})  # type: ignore[arg-type]
    store = open_logs(django_settings.LOGS_URL)
    store.store("n1-aa-1", [*stored, other])
    before = (now() - timedelta(hours=2)).isoformat()
    assert api("POST", "request-logs:delete", {"before": before}).json() == {"lines": 1}
    assert [each["id"] for each in api("GET", get(api, since=(old - timedelta(1)).isoformat())).json()["items"]] == [
        "1"
    ]
    assert store.usage(acme.account.pk + 1000).lines == 1
    audited = api("GET", "audit-entries?kind=RequestLines").json()["items"]
    assert [each["after"]["before"] for each in audited] == [before]
    editor = Api(actor_of("acme", "customer", Membership.Role.EDITOR))
    assert_problem(editor("POST", "request-logs:delete", {"before": before}), 403)


@pytest.mark.parametrize("before", [None, "yesterday", "2026-01-01T00:00:00", 7, "2999-01-01T00:00:00Z"])
def test_a_deletion_names_a_time_that_is_past(api: Api, before: object) -> None:
    body = assert_problem(api("POST", "request-logs:delete", {"before": before}), 422)
    assert [each["pointer"] for each in body["errors"]] == ["/before"]


@pytest.mark.usefixtures("lines")
def test_patterns_are_answered_in_sentences(api: Api, globex: Actor) -> None:
    found = api("GET", get(api, "/patterns/bytes-per-response", link_mbps="180")).json()
    assert found["sentences"] == []
    found = api("GET", get(api, "/patterns/slow-routes", filter="status>=500")).json()
    assert [row["cells"][0] for row in found["rows"]] == ["api", "shop"]
    assert found["rows"][0]["filter"] == '-route:"" route:api'
    other = Api(globex)("GET", get(api, "/patterns/slow-routes")).json()
    assert [row["cells"][0] for row in other["rows"]] == ["secret"]
    assert_problem(api("GET", get(api, "/patterns/nothing")), 404)
    assert_problem(api("GET", get(api, "/patterns/slow-routes", filter="stauts:3")), 422)


def test_saved_searches_are_made_listed_and_deleted(api: Api, globex: Actor) -> None:
    spec = {"filter": "status>=500", "metric": {"measure": "percentile", "of": "total_ms", "percentile": 99}}
    made = api("POST", "saved-searches", {"name": "slow", "spec": spec})
    assert made.status_code == 201
    url = made["Location"].removeprefix("/api/v1/")
    body = api("GET", url).json()
    assert (body["spec"], body["unit"], body["account"]) == (spec, "ms", "acme")
    assert [each["name"] for each in api("GET", "saved-searches").json()["items"]] == ["slow"]
    assert api("GET", f"{url}/history").json() == {"unit": "ms", "points": []}
    other = Api(globex)
    assert other("GET", "saved-searches").json()["items"] == []
    for method, each in (("GET", url), ("DELETE", url), ("GET", f"{url}/history")):
        assert_problem(other(method, each), 404)
    body = assert_problem(api("POST", "saved-searches", {"name": "slow", "spec": {"filter": "x:1"}}), 422)
    assert [each["pointer"] for each in body["errors"]] == ["/spec/filter"]
    body = assert_problem(api("POST", "saved-searches", {"name": "slow", "spec": {}}), 422)
    assert [each["pointer"] for each in body["errors"]] == ["/name"]
    assert api("DELETE", url).status_code == 204
    assert_problem(api("GET", url), 404)
    assert_problem(api("GET", "saved-searches/" + "9" * 30), 404)
