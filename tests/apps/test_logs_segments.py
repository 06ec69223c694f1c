"""What an agent says of the lines that wait there: what nothing can have is refused, a wrong clock is borne."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from apps.core.clock import now
from apps.drivers.proxy.agent import AgentDriver
from apps.drivers.proxy.contract import NodeTarget, Unreachable


@pytest.mark.parametrize(
    "said",
    [
        {"dropped": float("inf"), "oldest": 0},
        {"dropped": 10**30, "oldest": 0},
        {"dropped": -1, "oldest": 0},
        {"dropped": 0, "oldest": float("nan")},
        {"dropped": 0, "oldest": [[]]},
        [1],
    ],
)
def test_numbers_that_no_node_can_have_are_an_answer_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, said: Any
) -> None:
    answer = {"segments": [], **said} if isinstance(said, dict) else said
    monkeypatch.setattr(AgentDriver, "_ask", lambda *_: (200, json.dumps(answer).encode()))
    with pytest.raises(Unreachable):
        AgentDriver(NodeTarget("n1", "unix:///nowhere")).log_segments()


def test_lines_that_wait_for_as_long_as_a_clock_that_was_wrong_says_are_collected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = json.dumps({"segments": [], "dropped": 0, "oldest": float("inf")}).encode()
    monkeypatch.setattr(AgentDriver, "_ask", lambda *_: (200, answer))
    waiting = AgentDriver(NodeTarget("n1", "unix:///nowhere")).log_segments()
    assert now() - timedelta(seconds=waiting.oldest_s) < now()
