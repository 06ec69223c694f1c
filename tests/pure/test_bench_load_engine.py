"""The measurement of the load engine misses its goals where it must: the stated maximum, tools that are not there."""

from __future__ import annotations

from typing import Any

from tests.bench.load_engine import agreed, goals

THEORY = {"ours_ms": {"p95": 101.0, "p99": 181.0}, "theory_ms": {"p95": 100.0, "p99": 180.0}}
AGREES = {"name": "20 users", "tool": "hey", "p50": {"apart_percent": -1.0}, "p95": {"apart_percent": 4.9}}
MEDIAN_ONLY = {"name": "100/s", "tool": "httperf", "p50": {"apart_percent": 0.3}}


def at(off_percent: float) -> dict[str, float]:
    return {"asked": 33_000.0, "off_percent": off_percent}


def test_what_is_held_and_agrees_misses_nothing() -> None:
    assert goals(at(1.0), [AGREES, MEDIAN_ONLY], THEORY) == []


def test_a_stated_maximum_that_is_not_held_is_a_miss() -> None:
    assert goals(at(1.2), [AGREES], THEORY) == ["the stated 33,000 requests/s: 1.2 % off"]


def test_percentiles_that_are_apart_are_a_miss() -> None:
    apart: dict[str, Any] = AGREES | {"p95": {"apart_percent": -5.1}}
    assert goals(at(0), [apart], THEORY) == ["20 users: p95"]


def test_a_tool_that_is_not_installed_is_a_miss_and_said_loudly(capsys: Any) -> None:
    missing = agreed("20 users", "no-such-tool", dict, dict)
    assert "NOT COMPARED: no-such-tool is not installed" in capsys.readouterr().out
    assert goals(at(0), [missing], THEORY) == ["20 users: not compared, no-such-tool is not installed"]
