"""CHECK, the run of the whole suite: what was only slow among others is asked again alone, what is broken stays so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.both_databases import MAY_BE_SLOW, ROOT, SOME_FAILED, Part, answer

SECOND_TIME = """
from pathlib import Path
TRIED = Path(__file__).with_suffix(".tried")
def test_it():
    tried = TRIED.exists()
    TRIED.touch()
    assert tried
"""


def part_of(folder: Path, text: str) -> Part:
    """A part that is one module of tests, in a folder without settings."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_made_up.py").write_text(text)
    return Part("made up", ("-n", "0", "test_made_up.py"), {"PYTHONPATH": str(ROOT)}, folder / "failures")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the made-up tests are, and where they are run."""
    monkeypatch.setattr("tests.both_databases.ROOT", tmp_path)
    return tmp_path


def test_what_fails_only_among_others_has_passed(folder: Path) -> None:
    part = part_of(folder, SECOND_TIME)
    first = part.run()
    assert (first, part.failed()) == (SOME_FAILED, ["test_made_up.py::test_it"])
    assert answer(part, first) == 0


def test_what_fails_alone_as_well_has_failed(folder: Path) -> None:
    part = part_of(folder, "def test_it():\n    raise AssertionError\ndef test_other():\n    pass\n")
    assert answer(part, part.run()) == SOME_FAILED
    assert part.alone().failed() == ["test_made_up.py::test_it"]


def test_a_module_that_cannot_be_read_has_failed(folder: Path) -> None:
    part = part_of(folder, "import no_such_module_anywhere\n")
    assert answer(part, part.run()) != 0


def test_where_many_fail_something_is_broken_and_nothing_is_asked_again(folder: Path) -> None:
    part = part_of(folder, "".join(f"def test_{number}():\n    assert 0\n" for number in range(MAY_BE_SLOW + 1)))
    assert answer(part, part.run()) == SOME_FAILED
    assert not part.alone().failures.exists()


def test_modules_are_not_read_anew_by_each_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert part_of(folder, "import sys\ndef test_it():\n    assert not sys.dont_write_bytecode\n").run() == 0
