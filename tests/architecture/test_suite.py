"""What the runner of the suite promises: no folder is forgotten, slow tests need a reason, budgets hold."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests import processor
from tests.ledger import Cost, Entry
from tests.run_suite import COMPUTING, PROCESSES
from tests.suite_report import BUDGETS, NOISE, QUIET, SLOW_S, Machine, Run, overdrawn, report, unexplained

TESTS = Path(__file__).resolve().parents[1]
# A page's CSRF token is 64 random letters and digits: it holds a given pair of them in one run of sixty.
CHANCE = re.compile(r"""assert b?["']\w{1,3}["'] not in (?!\{)""")
SLOW = Entry(call=Cost(wall=1.4))
THREE_SECONDS = asdict(Entry(call=Cost(wall=3.0)))


def test_every_folder_with_tests_is_run() -> None:
    folders = {path.relative_to(TESTS.parent).parts[1] for path in TESTS.rglob("test_*.py")}
    assert {f"tests/{folder}" for folder in folders} == {*COMPUTING, *PROCESSES}


def test_no_test_of_an_interface_looks_for_what_a_random_token_may_hold() -> None:
    tests = sorted(TESTS.joinpath("interfaces").rglob("test_*.py"))
    assert {path.name: found for path in tests if (found := CHANCE.findall(path.read_text()))} == {}


def test_a_slow_test_without_a_reason_is_named() -> None:
    (complaint,) = unexplained({"tests/apps/test_x.py::test_y": SLOW})
    assert complaint.startswith("TOO SLOW tests/apps/test_x.py::test_y: 1.4 s")


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("tests/e2e/test_x.py::test_y", Entry(call=Cost(wall=1.4), reason="waits for processes")),
        ("tests/apps/test_x.py::test_with_a_reason", Entry(call=Cost(wall=1.4), reason="waits for a lease to end")),
        ("tests/apps/test_x.py::test_on_a_busy_machine", Entry(call=Cost(wall=9.0, waited=8.2))),
        ("tests/apps/test_x.py::test_with_a_slow_fixture", Entry(setup=Cost(wall=9.0))),
    ],
)
def test_a_slow_test_is_accepted_beside_processes_with_a_reason_and_on_a_busy_machine(name: str, entry: Entry) -> None:
    assert unexplained({name: entry}) == []


def test_what_noise_explains_is_named_and_fails_nothing() -> None:
    assert unexplained({"tests/apps/test_x.py::test_y": SLOW}, SLOW_S * NOISE) == []
    assert unexplained({"tests/apps/test_x.py::test_y": Entry(call=Cost(wall=2.1))}, SLOW_S * NOISE) != []


def test_a_suite_fails_a_fifth_above_its_budget() -> None:
    budget = BUDGETS["test"]
    assert overdrawn("test", budget * 1.19) == []
    assert overdrawn("test", budget * 1.21) != []
    assert overdrawn("all", 10**6) == []


@pytest.mark.parametrize(("others", "code"), [(0.0, 1), (QUIET, 1), (QUIET + 0.01, 0)])
def test_time_is_judged_where_no_other_program_took_it(tmp_path: Path, others: float, code: int) -> None:
    runs = [Run("computing", 0, 10.0, tmp_path / "none.json")]
    assert report("test", runs, BUDGETS["test"] * 2, Machine(others)) == code
    assert report("test", [replace(runs[0], code=3)], 1.0, Machine(others)) == 3


@pytest.mark.parametrize(("crowd", "code"), [(1.0, 1), (2.0, 0)])
def test_a_test_has_as_much_more_time_as_files_share_a_core(tmp_path: Path, crowd: float, code: int) -> None:
    ledger = tmp_path / "one.json"
    ledger.write_text(json.dumps({"starts": [], "tests": {"tests/conformance/test_x.py::test_y": THREE_SECONDS}}))
    assert report("test", [Run("processes", 0, 10.0, ledger, crowd)], 1.0, Machine()) == code


@pytest.mark.parametrize(("slow", "code"), [(1.0, 1), (1.6, 1), (1.7, 0)])
def test_a_slow_machine_has_as_much_more_time_as_it_is_slow(tmp_path: Path, slow: float, code: int) -> None:
    runs = [Run("computing", 0, 10.0, tmp_path / "none.json")]
    assert report("test", runs, BUDGETS["test"] * 2, Machine(slowness=slow)) == code


def test_a_machine_that_needs_more_time_for_the_same_work_counts_as_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "WORK", "import json")
    monkeypatch.setattr(processor, "REFERENCE_S", 10.0)
    assert processor.slowness(1) == 1.0
    monkeypatch.setattr(processor, "REFERENCE_S", 0.001)
    assert processor.slowness(1) > 2.0
