"""`spillway requests`: lines as a table, and each new one once while they are followed."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from apps.cli.client.commands import watching


def line(number: int, **said: Any) -> dict[str, Any]:
    usual = {"id": str(number), "time": f"T{number}", "client": "192.0.2.7", "kind": "request", "method": "GET"}
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


def test_each_new_request_is_printed_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pages = [[line(2), line(1)], [line(3), line(2), line(1)], [], [line(4), line(3), line(2)]]
    since = []

    def api(_method: str, _url: str, query: dict[str, str]) -> dict[str, Any]:
        since.append(query.get("since"))
        if not pages:
            raise KeyboardInterrupt
        return {"items": pages.pop(0)}

    monkeypatch.setattr(watching, "PAUSE_S", 0)
    with pytest.raises(KeyboardInterrupt):
        watching.show_requests(api, asked(follow=True))  # type: ignore[arg-type]
    shown = capsys.readouterr().out.splitlines()
    assert [each.split()[0] for each in shown] == ["T1", "T2", "T3", "T4"]
    assert since == [None, "T1", "T1", "T1", "T2"]
