"""Plans and records survive their journey between processes; several shares are the whole."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from apps.drivers.load.bounds import check
from apps.drivers.load.contract import Arrivals, Endpoint, Plan, Request, Second, Tls
from apps.drivers.load.histogram import Histogram, merged
from apps.drivers.load.process import ProcessGenerator
from apps.drivers.load.several import SeveralGenerator, process_generator, shares_of, sum_of
from apps.drivers.load.wire import line_of, plan_from_json, plan_to_json, read_line, second_from_json, second_to_json

PLAN = Plan(
    (Endpoint("192.0.2.1", 80), Endpoint("2001:db8::1", 443)),
    Request("a.example", "/p?q", "POST", {"x-load-test": "run-17"}, b"\x00\xff"),
    rate=100.0,
    max_rate=1000.0,
    arrivals=Arrivals.CONSTANT,
    tls=Tls("a.example", "/etc/ca.pem", verify=False),
    seed=5,
)


def second_of(offered: int, latency_us: int, **values: object) -> Second:
    histogram = Histogram()
    histogram.record(latency_us)
    made = Second(1.0, 10.0, offered, offered, 1, {200: 1}, {"reset": 1}, 2, 3, histogram.encode(), late_ms=1.0)
    return replace(made, **values)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize("plan", [PLAN, replace(PLAN, tls=None, rate=0.0, max_rate=0.0, users=3)])
def test_a_plan_survives_its_journey(plan: Plan) -> None:
    word, values = read_line(line_of("plan", plan=plan_to_json(plan)))
    assert (word, plan_from_json(values["plan"])) == ("plan", plan)


def test_a_record_survives_its_journey() -> None:
    second = second_of(7, 1234, statuses={200: 5, 503: 2})
    assert second_from_json(json.loads(json.dumps(second_to_json(second)))) == second


def test_shares_are_the_whole() -> None:
    shares = shares_of(replace(PLAN, max_connections=201), 3)
    for share in shares:
        check(share)
    assert sum(share.rate for share in shares) == pytest.approx(PLAN.rate)
    assert sum(share.max_rate for share in shares) == pytest.approx(PLAN.max_rate)
    assert sum(share.max_connections for share in shares) == 201
    assert len({share.seed for share in shares}) == 3
    assert [share.users for share in shares_of(replace(PLAN, rate=0.0, users=7), 3)] == [3, 2, 2]


def test_records_are_added() -> None:
    whole = sum_of([second_of(3, 1000), second_of(4, 9000, generator_limited=True, late_ms=12.0, statuses={503: 1})])
    assert (whole.offered, whole.sent, whole.answered, whole.in_flight, whole.connections) == (7, 7, 2, 4, 6)
    assert (whole.statuses, whole.errors) == ({200: 1, 503: 1}, {"reset": 2})
    assert (whole.late_ms, whole.generator_limited, whole.target) == (12.0, True, 20.0)
    assert merged([whole.histogram]).total == 2


def test_a_plan_gets_as_many_processes_as_its_highest_rate_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    kinds = [type(process_generator(replace(PLAN, max_rate=rate))) for rate in (1000.0, 20_000.0, 70_000.0)]
    assert kinds == [ProcessGenerator, ProcessGenerator, SeveralGenerator]
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert isinstance(process_generator(replace(PLAN, max_rate=70_000.0)), ProcessGenerator)


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b'{"say": 1}', b"nonsense"])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_line(line)
