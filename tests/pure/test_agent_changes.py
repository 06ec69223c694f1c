"""What an agent leaves out is what its reader knows: by changes one learns the same as by whole answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agent.process import changes
from apps.agent.process.changes import Changes
from apps.drivers.proxy.agent import _rows, read_counter_reading
from apps.drivers.proxy.contract import CounterReading
from apps.observe.collect.buckets import Gatherer
from apps.observe.collect.deltas import Counts, Key, UnknownBase
from tests.apps.observe_env import row

STATE = {"generation": 1, "drift": [], "clock": 1.0}


def samples(
    epoch: str, at: float, counts: dict[str, int], latency: dict[str, dict[str, int]] | None = None
) -> dict[str, Any]:
    """What an agent reads of its HAProxy: pools by their requests."""
    rows = [row("backend", name, count)._asdict() for name, count in counts.items()]
    return {"epoch": epoch, "read_at": at, "rows": rows, "latency_buckets": latency or {}}


def heard(answer: dict[str, Any]) -> CounterReading:
    """As the console's driver reads it."""
    found = answer["samples"]
    return read_counter_reading(found, _rows(found), answer["token"], answer["base"])


@dataclass
class Reader:
    """A collector's memory of one node, with what it shows and stores of it."""

    ask: Callable[[str, dict[str, Any]], dict[str, Any]]
    gatherer: Gatherer = field(default_factory=lambda: Gatherer(1))
    token: str = ""

    def read(self, found: dict[str, Any]) -> None:
        """Ask, take, and ask for everything next time where the answer did not fit."""
        reading = heard(self.ask(self.token, found))
        try:
            self.gatherer.put(found["read_at"], reading)
            self.token = reading.token
        except UnknownBase:
            self.token = ""

    def shown(self) -> dict[Key, Counts]:
        """Every row of the last seconds."""
        memory = self.gatherer.memory
        return self.gatherer.rests(memory.rows if memory else ()) | self.gatherer.window()


def whole(_: str, found: dict[str, Any]) -> dict[str, Any]:
    """An agent that always tells everything."""
    return Changes().tell("", STATE, found)


counts = st.dictionaries(st.sampled_from(["pool-1", "pool-2", "pool-3"]), st.integers(0, 5))
histories = st.lists(st.tuples(st.sampled_from(["tick", "tick", "tick", "reload", "restart", "other", "lost"]), counts))


def follow(history: list[tuple[str, dict[str, int]]], agent: type[Changes] = Changes) -> None:
    """Read the same history by changes and whole, and compare after each step."""
    told, epoch, at = agent(), 0, 1000.0
    by_changes, by_all = Reader(lambda since, found: told.tell(since, STATE, found)), Reader(whole)
    for what, grown in [("tick", {"pool-1": 1}), *history]:
        at += 2
        if what == "reload":
            epoch += 1
        if what == "restart":
            told = agent()
        found = samples(str(epoch), at, grown, {name: {"10": count} for name, count in grown.items() if count})
        if what == "other":  # somebody else asks in between
            told.tell("", STATE, found)
        if what == "lost":  # an answer that does not arrive
            told.tell(by_changes.token, STATE, found)
        by_changes.read(found)
        by_all.read(found)
        assert by_changes.shown() == by_all.shown()
        assert by_changes.gatherer.parts == by_all.gatherer.parts


@given(histories)
def test_who_hears_changes_knows_as_much_as_who_hears_everything(history: list[tuple[str, dict[str, int]]]) -> None:
    follow(history)


class KeepsWhatIsGone(Changes):
    """Without the safeguard: it does not say that a row went."""

    def tell(self, *words: Any) -> dict[str, Any]:
        answer = super().tell(*words)
        answer["samples"]["gone"] = []
        return answer


class KeepsItsName(Changes):
    """Without the safeguard: counters that began anew are told as if nothing had happened."""

    def tell(self, since: str, state: Any, found: Any) -> dict[str, Any]:
        return super().tell(since, state, {**found, "epoch": "always"})


class TellsChangesToAnybody(Changes):
    """Without the safeguard: it takes whatever it told last for what the reader knows."""

    def tell(self, since: str, state: Any, found: Any) -> dict[str, Any]:
        last = f"{self._name}-{self._turn}" if since and self._turn else ""
        return {**super().tell(last, state, found), "base": since if last else ""}


@pytest.mark.parametrize(
    ("broken", "history"),
    [
        (KeepsWhatIsGone, [("tick", {"pool-1": 1, "pool-2": 2}), ("tick", {"pool-1": 1})]),
        (KeepsItsName, [("tick", {"pool-1": 3}), ("reload", {"pool-1": 3})]),
        (TellsChangesToAnybody, [("tick", {"pool-1": 2}), ("lost", {"pool-1": 5})]),
    ],
)
def test_the_comparison_notices_what_each_safeguard_prevents(
    broken: type[Changes], history: list[tuple[str, dict[str, int]]]
) -> None:
    follow(history)
    with pytest.raises(AssertionError):
        follow(history, broken)


def test_what_did_not_change_is_not_told_again() -> None:
    told = Changes()
    first = told.tell("", STATE, samples("1", 1, {"pool-1": 5, "pool-2": 5}, {"pool-1": {"10": 5}}))
    assert (first["base"], len(first["samples"]["rows"]), first["state"]["generation"]) == ("", 2, 1)
    second = told.tell(
        first["token"], {**STATE, "clock": 3.0}, samples("1", 3, {"pool-1": 5, "pool-2": 6}, {"pool-1": {"10": 5}})
    )
    assert [values[1] for values in second["samples"]["rows"]] == ["pool-2"]
    assert (second["base"], second["state"], second["clock"]) == (first["token"], None, 3.0)
    assert (second["samples"]["latency_buckets"], second["samples"]["read_at"]) == ({}, 3)
    third = told.tell(second["token"], {**STATE, "drift": ["edited"]}, samples("1", 5, {"pool-1": 5, "pool-2": 6}))
    assert (third["samples"]["rows"], third["state"]["drift"]) == ([], ["edited"])


@pytest.mark.parametrize(
    "token", ["", "-", "x-1", "{name}-0", "{name}-9", "{name}--1", "{name}-1.5", "{name}-²", "{name}-" + 5000 * "1"]
)
def test_a_token_that_the_agent_did_not_give_is_answered_with_everything(token: str) -> None:
    told = Changes()
    name = told.tell("", STATE, samples("1", 1, {"pool-1": 5}))["token"].rpartition("-")[0]
    answer = told.tell(token.format(name=name), STATE, samples("1", 3, {"pool-1": 5}))
    assert (answer["base"], len(answer["samples"]["rows"]), answer["samples"]["gone"]) == ("", 1, [])


def test_readers_at_different_paces_each_hear_what_they_do_not_know() -> None:
    told = Changes()
    slow = quick = told.tell("", STATE, samples("1", 1, {"pool-1": 1, "pool-2": 1}))["token"]
    quick = told.tell(quick, STATE, samples("1", 3, {"pool-1": 2, "pool-2": 1}))["token"]
    quick = told.tell(quick, STATE, samples("1", 5, {"pool-1": 2, "pool-2": 2}))["token"]
    last = samples("1", 7, {"pool-1": 2, "pool-2": 2})
    assert told.tell(quick, STATE, last)["samples"]["rows"] == []
    assert len(told.tell(slow, STATE, last)["samples"]["rows"]) == 2


@pytest.mark.parametrize(
    ("check", "later", "tells"),
    [
        ("L7OK/200 in 6 ms", 2, False),
        ("L7OK/200 in 9 ms", 2, False),
        ("L7OK/200 in 30 ms", 2, True),
        ("L7STS/503 in 3 ms", 2, True),
        ("L4CON", 2, True),
        ("L7OK/200 in 4 ms", 61, True),
    ],
)
def test_how_long_a_check_took_is_told_when_it_moved_much_or_after_a_minute(
    monkeypatch: pytest.MonkeyPatch, check: str, later: float, tells: bool
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("apps.agent.process.changes.time.monotonic", lambda: clock[0])
    told = Changes()

    def ask(since: str, text: str) -> dict[str, Any]:
        server = row("server", "srv-1", check=text)._asdict()
        return told.tell(since, STATE, {"epoch": "1", "read_at": 1.0, "rows": [server], "latency_buckets": {}})

    token = ask("", "L7OK/200 in 3 ms")["token"]
    clock[0] += later
    assert bool(ask(token, check)["samples"]["rows"]) is tells


def test_rows_that_come_and_go_without_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_GONE", 10)
    told, token, wholes = Changes(), "", 0
    for number in range(50):
        answer = told.tell(token, STATE, samples("1", number, {f"pool-{number}": 1}))
        token, wholes = answer["token"], wholes + (answer["base"] == "")
        assert len(told._gone) <= 11
    assert wholes == 5
