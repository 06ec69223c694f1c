"""The commands about schedules and capacity tests: what they ask the server for, what they print, how they end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from apps.cli.client.main import main

SCHEDULE = {
    "id": 7, "name": "nightly", "account": "acme", "sentence": "Every day at 03:30", "next_at": "2027-01-31T03:30:00Z",
    "missed": 0, "spec": {"paused": False, "target": {"topic": {"topic": "ticks"}}},
}  # fmt: skip
SCHEDULE_RUN = {
    "id": 41, "schedule": "nightly", "scheduled_at": "2027-01-30T03:30:00Z", "state": "done", "attempt": 1,
    "cause": "time", "message": "It was\x1b[2J sent.",
}  # fmt: skip
TEST = {
    "id": 3, "name": "shop-us", "account": "acme",
    "spec": {
        "target": {"pool": "shop", "region": "us"}, "load": {"kind": "search"}, "policy": {"apply": "by_hand"},
    },
}  # fmt: skip
RUN: dict[str, Any] = {
    "id": 12, "name": "shop-us", "account": "acme", "pool": "shop", "region": "us", "state": "running",
    "terminal": False, "waits_for_approval": False, "phase": "It holds 10/s.", "message": "", "result": None,
    "created_at": "2027-01-30T03:30:00Z", "limit_set_at": None, "limit_set_by": "",
}  # fmt: skip
POINT = {"rate": 15.0, "answered": 15.0, "p95_ms": 480.1234, "error_rate": 0.0, "status": "good"}
DONE = RUN | {"state": "done", "terminal": True, "phase": "", "result": {"message": "15/s.", "curve": [POINT]}}


class Server(ThreadingHTTPServer):
    """Answers what a test has put there, by method and path, one after the other; the last stays."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, list[Any]] = {}
        self.asked: list[tuple[str, dict[str, str], Any, str]] = []

    def put(self, what: str, *bodies: Any) -> None:
        """`GET schedules` → these answers; a status other than 200 stands before its body in a tuple."""
        self.answers[what] = list(bodies)

    @property
    def calls(self) -> list[str]:
        """What was asked for, without its query."""
        return [what for what, _, _, _ in self.asked]


class Handler(BaseHTTPRequestHandler):
    """One request of the command."""

    def answer(self) -> None:
        """Remember the request; answer as the test said, 404 for what it did not think of."""
        assert isinstance(self.server, Server)
        parts = urlsplit(self.path)
        what = f"{self.command} {parts.path.removeprefix('/api/v1/')}"
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        sent = json.loads(body) if body else None
        self.server.asked.append((what, dict(parse_qsl(parts.query)), sent, self.headers.get("X-Change-Reason", "")))
        waiting = self.server.answers.get(what, [(404, {"detail": "Not here."})])
        found = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        status, said = found if isinstance(found, tuple) else (200, found)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())

    do_GET = do_POST = answer  # noqa: N815 - the names by which the standard library calls it

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A console that says what the test wants."""
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        monkeypatch.setenv("SPILLWAY_URL", f"http://127.0.0.1:{found.server_address[1]}")
        monkeypatch.setenv("SPILLWAY_TOKEN", "sw_test")
        yield found
        found.shutdown()
        thread.join()


def items(*rows: Any, cursor: str | None = None) -> dict[str, Any]:
    """A page of a list."""
    return {"items": list(rows), "next_cursor": cursor}


def test_a_list_is_read_to_its_end(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    paused = SCHEDULE | {"id": 8, "name": "weekly", "spec": {"paused": True, "target": {"rollout": {}}}}
    server.put("GET schedules", items(SCHEDULE, cursor="more"), items(paused))
    assert main(["schedule", "list", "--account", "acme"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "SCHEDULE", "WHEN", "TARGET", "NEXT"]
    assert first.split()[:2] == ["7", "acme/nightly"]
    assert second.endswith("rollout  paused")
    queries = [query for _, query, _, _ in server.asked]
    assert queries == [{"limit": "500", "account": "acme"}, {"limit": "500", "account": "acme", "cursor": "more"}]


STEP = {"node": "us-1", "wave": 1, "state": "done", "how": "reload", "message": ""}
IN_WAVES: dict[str, Any] = {
    "id": 14, "fleet": "us", "revision": 8, "state": "soaking", "terminal": False, "message": "", "steps": [STEP],
    "wave": 2, "waves": 3, "soaks_until": "2027-01-31T03:30:00Z",
    "gates": [{"wave": 1, "passed": True, "message": "1 node served 43 requests.", "at": "2027-01-31T03:29:00Z"}],
}  # fmt: skip


def test_a_rollout_in_waves_says_where_it_is_and_how_each_wave_did(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put("GET rollouts/14", IN_WAVES)
    assert main(["rollout", "14"]) == 0
    head, gate, columns, step = capsys.readouterr().out.splitlines()
    assert head == "Rollout 14 of us, revision 8: soaking, wave 2 of 3 until 2027-01-31T03:30:00Z"
    assert gate == "Wave 1: 1 node served 43 requests."
    assert (columns.split()[:2], step.split()) == (["NODE", "WAVE"], ["us-1", "1", "done", "reload"])


def test_a_console_before_waves_is_understood(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("GET rollouts/14", {name: IN_WAVES[name] for name in list(IN_WAVES)[:7]} | {"state": "pushing"})
    assert main(["rollout", "14"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "Rollout 14 of us, revision 8: pushing"


def test_waves_are_ended_with_a_reason(server: Server) -> None:
    server.put("POST rollouts/14/push-to-all", (202, IN_WAVES))
    assert main(["push-to-all", "14", "--reason", "An outage"]) == 0
    assert server.calls == ["POST rollouts/14/push-to-all"]


CHANGE: dict[str, Any] = {"change": "0123456789abcdef", "objects": [], "live": False, "waits_for": [], "rollouts": []}
QUARANTINED = {"fleet": "us", "reason": "quarantined", "message": "Pool acme/shop is left out.", "nodes": []}


def test_a_change_is_waited_for_until_it_is_live(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    rollout = {"fleet": "us", "state": "done", "nodes": 2, "nodes_done": 2}
    server.put("GET changes/0123456789abcdef", CHANGE, CHANGE | {"live": True, "rollouts": [rollout]})
    assert main(["wait", "0123456789abcdef"]) == 0
    assert "It is live on every node." in capsys.readouterr().out
    assert [query["wait"] for _, query, _, _ in server.asked] == ["0", "30"]


def test_what_was_refused_is_named_and_not_waited_for(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("GET changes/0123456789abcdef", CHANGE | {"waits_for": [QUARANTINED]})
    assert main(["wait", "0123456789abcdef"]) == 1
    assert "Pool acme/shop is left out." in capsys.readouterr().out
    assert len(server.asked) == 1


def test_a_change_is_taken_back_under_its_manager(server: Server) -> None:
    server.put("POST changes/0123456789abcdef/revert", {"counts": {"delete": 1}, "changes": []})
    assert main(["revert", "0123456789abcdef", "--manager", "shop", "--break-glass", "--reason", "5xx"]) == 0
    (asked,) = server.asked
    assert asked[1:] == ({"manager": "shop", "break_glass": "true"}, None, "5xx")
    assert main(["revert", "../routes"]) == 1


@pytest.mark.parametrize(
    ("named", "asked"),
    [
        ("7", []),
        ("nightly", [{"name": "nightly", "limit": "10"}]),
        ("acme/nightly", [{"name": "nightly", "limit": "10", "account": "acme"}]),
    ],
)
def test_a_schedule_is_named_by_its_name_its_account_or_its_id(
    server: Server, named: str, asked: list[dict[str, str]]
) -> None:
    server.put("GET schedules/7", SCHEDULE)
    server.put("GET schedules", items(SCHEDULE))
    server.put("POST schedules/7/run", SCHEDULE_RUN)
    assert main(["schedule", "run", named, "--reason", "für heute"]) == 0
    assert [query for what, query, _, _ in server.asked if what == "GET schedules"] == asked
    what, _, _, reason = server.asked[-1]
    assert (what, reason.encode("latin-1").decode()) == ("POST schedules/7/run", "für heute")


def test_a_name_of_several_accounts_and_of_none_is_refused(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("GET schedules", items(SCHEDULE, SCHEDULE | {"id": 9, "account": "globex"}), items())
    assert main(["schedule", "pause", "nightly"]) == 1
    assert "acme/nightly, globex/nightly" in capsys.readouterr().err
    assert main(["schedule", "pause", "nightly"]) == 1
    assert "There is no schedule nightly" in capsys.readouterr().err
    assert server.calls == ["GET schedules"] * 2


def test_a_schedule_is_shown_with_what_it_run_and_nothing_that_a_terminal_obeys(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put("GET schedules", items(SCHEDULE | {"missed": 2}))
    server.put("GET schedules/7/runs", items(SCHEDULE_RUN))
    assert main(["schedule", "show", "nightly"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Schedule acme/nightly (7): Every day at 03:30\nNext: 2027-01-31T03:30:00Z\nMissed: 2\n")
    assert "\\x1b[2J" in shown
    assert {each for each in shown if not each.isprintable()} == {"\n"}


@pytest.mark.parametrize(("verb", "words"), [("pause", "no more runs"), ("resume", "next 2027-01-31T03:30:00Z")])
def test_a_schedule_is_paused_and_resumed(
    server: Server, capsys: pytest.CaptureFixture[str], verb: str, words: str
) -> None:
    server.put("GET schedules/7", SCHEDULE)
    server.put(f"POST schedules/7/{verb}", SCHEDULE)
    assert main(["schedule", verb, "7"]) == 0
    assert words in capsys.readouterr().out


def test_runs_are_those_of_one_schedule_or_of_all(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("GET schedule-runs", items(SCHEDULE_RUN))
    server.put("GET schedules/7", SCHEDULE)
    server.put("GET schedules/7/runs", items())
    assert main(["schedule", "runs", "--state", "dead", "--limit", "5"]) == 0
    assert server.asked[-1][:2] == ("GET schedule-runs", {"limit": "5", "state": "dead"})
    assert "41" in capsys.readouterr().out
    assert main(["schedule", "runs", "7"]) == 0
    assert capsys.readouterr().out == "No runs yet.\n"
    server.put("POST schedule-runs/41/retry", (409, {"detail": "It is not dead."}))
    assert main(["schedule", "retry", "41"]) == 1


def test_tests_are_listed_and_shown_with_what_stands_in_their_way(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put("GET capacity-tests", items(TEST))
    check = {"code": "blackout", "ok": False, "message": "A blackout is in force.", "passing": True}
    server.put("GET capacity-tests/3/checks", {"may_run": False, "checks": [check]})
    assert main(["capacity", "list"]) == 0
    assert "3   acme/shop-us  shop  us      search  by_hand" in capsys.readouterr().out
    assert main(["capacity", "show", "shop-us"]) == 0
    assert "It cannot run now:\n    no   A blackout is in force.\n" in capsys.readouterr().out


def test_a_test_is_started_and_waited_for(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("GET capacity-tests", items(TEST))
    server.put("POST capacity-tests/3/run", RUN)
    server.put("GET capacity-runs/12", DONE)
    assert main(["capacity", "start", "shop-us"]) == 0
    assert capsys.readouterr().out == "Run 12 of shop-us on shop in us: running\nIt holds 10/s.\n"
    assert main(["capacity", "start", "shop-us", "--wait", "--approve"]) == 0
    shown = capsys.readouterr().out
    assert "Run 12 of shop-us on shop in us: done\n15/s.\n\nRATE" in shown
    assert "480.123" in shown
    sent = [body for what, _, body, _ in server.asked if what == "POST capacity-tests/3/run"]
    assert sent == [None, {"approve": True}]
    assert server.asked[-1][:2] == ("GET capacity-runs/12", {"wait": "30"})


@pytest.mark.parametrize(("state", "code"), [("done", 0), ("refused", 1), ("failed", 1), ("stopped", 1)])
def test_a_run_that_found_nothing_ends_with_1(server: Server, state: str, code: int) -> None:
    server.put("GET capacity-runs/12", DONE | {"state": state, "message": "Somebody stopped it."})
    assert main(["capacity", "run", "12", "--wait"]) == code


def test_runs_are_those_of_one_test_or_of_all(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("GET capacity-tests", items(TEST))
    server.put("GET capacity-runs", items(DONE), items())
    assert main(["capacity", "runs", "shop-us"]) == 0
    assert server.asked[-1][1] == {"limit": "50", "test": "shop-us", "account": "acme"}
    assert "15/s." in capsys.readouterr().out
    assert main(["capacity", "runs"]) == 0
    assert capsys.readouterr().out == "No runs yet.\n"


def test_a_run_is_stopped_approved_and_made_the_limit(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("stop", "approve"):
        server.put(f"POST capacity-runs/12/{verb}", RUN)
        assert main(["capacity", verb, "12", "--reason", "enough"]) == 0
    server.put("POST capacity-runs/12/set-limit", DONE | {"limit_set_at": "2027-01-30T04:00:00Z"})
    assert main(["capacity", "set-limit", "12"]) == 0
    assert main(["capacity", "set-limit", "12", "--margin", "0.2", "--output", "json"]) == 0
    assert [body for what, _, body, _ in server.asked if what.endswith("set-limit")] == [None, {"margin": 0.2}]
    shown = capsys.readouterr().out
    assert "What run 12 found is now the limit of shop in us." in shown
    assert '"limit_set_at": "2027-01-30T04:00:00Z"' in shown


@pytest.mark.parametrize(
    "words",
    [
        ["schedule"],
        ["schedule", "show"],
        ["schedule", "runs", "--state", "odd"],
        ["capacity", "run", "shop"],
        ["capacity", "set-limit", "12", "--margin", "1"],
        ["capacity", "set-limit", "12", "--margin", "nan"],
    ],
)
def test_words_that_cannot_be_understood_ask_nothing(server: Server, words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert (ended.value.code, server.calls) == (1, [])


LIST = {"id": 5, "name": "bad", "account": "acme", "spec": {"entries": []}}


def test_a_client_is_banned_for_a_while_and_the_ban_is_lifted(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put("GET network-lists", items(LIST))
    server.put("POST network-lists/5/ban", LIST)
    server.put("POST network-lists/5/lift", LIST)
    assert main(["ban", "198.51.100.7", "--list", "bad", "--for", "15m", "--reason", "floods"]) == 0
    assert "198.51.100.7 is in bad until 20" in capsys.readouterr().out
    _, _, sent, why = server.asked[-1]
    assert (sent["network"], sent["reason"], why) == ("198.51.100.7", "floods", "floods")
    assert main(["unban", "198.51.100.7", "--list", "bad", "--account", "acme"]) == 0
    assert server.asked[-2][1] == {"name": "bad", "account": "acme"}
    assert server.asked[-1][2] == {"network": "198.51.100.7"}


@pytest.mark.parametrize("words", [["--for", "soon"], ["--for", "0s"], ["--for", "1y"]])
def test_a_time_that_is_none_bans_nobody(server: Server, words: list[str]) -> None:
    server.put("GET network-lists", items(LIST))
    assert main(["ban", "198.51.100.7", "--list", "bad", *words]) == 1
    assert not any(what.startswith("POST") for what in server.calls)


def test_a_list_that_is_not_there_or_has_twins_bans_nobody(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    for found, said in ((items(), "no list of networks"), (items(LIST, LIST), "--account")):
        server.put("GET network-lists", found)
        assert main(["ban", "198.51.100.7", "--list", "bad"]) == 1
        assert said in capsys.readouterr().err
