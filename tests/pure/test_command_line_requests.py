"""`spillway requests`: lines as a table, and each new one once while they are followed."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.cli.client.commands import watching


def time_of(number: float) -> str:
    """A number of seconds after an instant."""
    return (datetime(2026, 1, 31, 12, tzinfo=UTC) + timedelta(seconds=number)).isoformat()


def line(number: int, **said: Any) -> dict[str, Any]:
    usual = {"id": str(number), "time": time_of(number), "client": "192.0.2.7", "kind": "request", "method": "GET"}
    more = {"host": "shop", "path": f"/{number}\x1b", "status": 200, "total_ms": 3}
    return {**usual, **more, "route": "r", "server": "s", "why": "", **said}


def asked(**given: Any) -> argparse.Namespace:
    usual = {"filter": ["status>=500", "route:shop"], "follow": False, "since": None, "until": None, "account": None}
    return argparse.Namespace(**{**usual, "limit": 2, **given})


def test_requests_are_shown_as_a_table() -> None:
    queries = []

    def api(_method: str, _url: str, query: dict[str, str]) -> dict[str, Any]:
        queries.append(query)
        return {"items": [line(2), line(1, kind="connection", status=None, total_ms=None)]}

    items, text, code = watching.show_requests(api, asked(account="acme"))  # type: ignore[arg-type]
    assert queries == [{"account": "acme", "filter": "status>=500 route:shop", "limit": "2"}]
    assert (len(items), code) == (2, 0)
    assert "GET shop/2" in text
    assert "(connection)" in text
    assert "\x1b" not in text


def test_missing_lines_are_said_beside_the_requests(capsys: pytest.CaptureFixture[str]) -> None:
    words = "Request lines of 1 of 2 nodes are missing; they are counted when they come."

    def api(_method: str, _url: str, query: dict[str, str]) -> dict[str, Any]:
        return {"items": [line(2)], "missing": words}

    _, text, code = watching.show_requests(api, asked())  # type: ignore[arg-type]
    assert (capsys.readouterr(), words in text, code) == (("", f"{words}\n"), False, 0)


class Log:
    """An API with a log that grows by a part before each first page; the questions are kept."""

    def __init__(self, *parts: list[dict[str, Any]]) -> None:
        self.parts, self.lines = list(parts), list[dict[str, Any]]()
        self.queries: list[dict[str, str]] = []
        self.missing: list[str] = []

    def __call__(self, _method: str, url: str, query: dict[str, str]) -> dict[str, Any]:
        self.queries.append(dict(query))
        if url == "request-logs" and "cursor" not in query:
            if not self.parts:
                raise KeyboardInterrupt
            self.said = self.missing.pop(0) if self.missing else ""
            self.lines = sorted(self.lines + self.parts.pop(0), key=lambda each: datetime.fromisoformat(each["time"]))
        found = [each for each in reversed(self.lines) if self._in_window(each, query)]
        if url == "request-logs/histogram":
            return {"bins": [{"counts": {"2xx": len(found) - 1, "5xx": 1}}]}
        begin, limit = int(query.get("cursor", 0)), int(query["limit"])
        more = str(begin + limit) if len(found) > begin + limit else None
        return {"items": found[begin : begin + limit], "next_cursor": more, "missing": self.said}

    def _in_window(self, each: dict[str, Any], query: dict[str, str]) -> bool:
        at = datetime.fromisoformat(each["time"])
        since, until = (query.get(name) for name in ("since", "until"))
        late = until is not None and at >= datetime.fromisoformat(until)
        return not late and (since is None or at >= datetime.fromisoformat(since))


def followed(log: Log, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **given: Any) -> list[str]:
    """The paths that are printed, and last what is said as an error."""
    monkeypatch.setattr(watching, "PAUSE_S", 0)
    with pytest.raises(KeyboardInterrupt):
        watching.show_requests(log, asked(follow=True, **given))  # type: ignore[arg-type]
    shown = capsys.readouterr()
    return [*(each.split("shop/")[1].split("\\")[0] for each in shown.out.splitlines()), shown.err]


def test_each_new_request_is_printed_once_also_what_comes_late(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Log([line(1), line(2)], [line(4)], [], [line(3), line(5)])
    assert followed(log, monkeypatch, capsys, until="yesterday") == ["1", "2", "4", "3", "5", ""]
    assert [each.get("since") for each in log.queries] == [None, *map(time_of, (-1, 1, 1, 2))]
    assert not any("until" in each for each in log.queries)


def test_who_follows_hears_once_that_lines_are_missing_and_again_when_it_is_something_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Log([line(1)], [], [], [line(2)], [])
    log.missing = ["One is missing.", "One is missing.", "Two are missing.", "", "Two are missing."]
    assert followed(log, monkeypatch, capsys)[-1] == "One is missing.\nTwo are missing.\nTwo are missing.\n"


def test_more_requests_than_a_page_are_followed_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    burst = [line(1 + number, time=time_of(1 + number / 1000)) for number in range(1200)]
    shown = followed(Log([line(0)], burst), monkeypatch, capsys)
    assert shown == [*map(str, range(1201)), ""]


def test_what_is_too_much_for_a_turn_is_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watching, "PAGE", 10)
    monkeypatch.setattr(watching, "PAGES", 3)
    burst = [line(1 + number, time=time_of(1 + number / 100)) for number in range(43)]
    *shown, said = followed(Log([line(0)], burst, []), monkeypatch, capsys)
    assert shown == ["0", *map(str, range(14, 44))]
    assert said.startswith("13 requests are left out")
    assert said.count("left out") == 1


def test_what_was_there_before_is_not_taken_for_new(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watching, "BEFORE", 3)
    there = [line(1 + number, time=time_of(1 + number / 100)) for number in range(9)]
    assert followed(Log(there, [line(10)]), monkeypatch, capsys) == ["7", "8", "9", "10", ""]
