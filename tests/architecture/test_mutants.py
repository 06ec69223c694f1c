"""The defects that `make mutants` plants still have their place, their tests and their row on the page."""

from __future__ import annotations

import ast

from tests.architecture.sources import ROOT
from tests.mutants import FEWEST, MOST_EXHAUSTIVE, read_mutants

MUTANTS = read_mutants()


def test_a_defect_has_one_place_and_tests_that_are_there() -> None:
    for mutant in MUTANTS:
        planted = mutant.planted((ROOT / mutant.file).read_text())
        if mutant.file.endswith(".py"):
            ast.parse(planted)
        missing = [test for test in mutant.tests if not (ROOT / test.partition("::")[0]).is_file()]
        assert missing == [], mutant.name
        assert mutant.tests, f"{mutant.name}: a defect that no test is asked about proves nothing"


def test_defects_are_many_named_once_and_few_need_the_whole_suite() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= FEWEST
    assert sum(mutant.only == "exhaustive" for mutant in MUTANTS) <= MOST_EXHAUSTIVE
    assert {mutant.only for mutant in MUTANTS} <= {"", "exhaustive"}


def test_the_page_has_a_row_for_each_defect() -> None:
    page = (ROOT / "docs" / "develop" / "mutants.md").read_text()
    assert [mutant.name for mutant in MUTANTS if f"| {mutant.name} | {mutant.safety} |" not in page] == []
