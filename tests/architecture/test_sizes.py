"""Files and functions stay small enough to be read at one sitting."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.architecture.sources import functions, modules, name

LARGEST_FILE = 500
LARGEST_FUNCTION = 60
TYPICAL_FUNCTION = 20
LARGEST_FOLDER = 14


def test_no_file_is_longer_than_500_lines() -> None:
    assert [name(path) for path in modules() if len(path.read_text().splitlines()) > LARGEST_FILE] == []


def test_no_folder_of_apps_has_more_than_14_modules() -> None:
    folders = Counter(name(path.parent) for path in modules("apps") if path.name != "__init__.py")
    assert {folder for folder, count in folders.items() if count > LARGEST_FOLDER} == set()


@pytest.mark.slow(reason="every module of the project is parsed")
def test_no_function_is_longer_than_60_lines_and_the_typical_one_has_at_most_20() -> None:
    long = [
        f"{name(path)}:{function.line} {function.name} ({function.lines})"
        for path in modules()
        for function in functions(path)
        if function.lines > LARGEST_FUNCTION
    ]
    assert long == []
    sizes = sorted(function.lines for path in modules("apps", "controlplane") for function in functions(path))
    assert sizes[len(sizes) * 9 // 10] <= TYPICAL_FUNCTION
