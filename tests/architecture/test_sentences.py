"""Every module opens with one plain sentence that says what it does, and no module is a drawer for odds and ends."""

from __future__ import annotations

import re

from tests.architecture.sources import modules, name, opening

# Where something stands in the flow is said once, by the package: `SHOW to people: …`, `PUSH, the decision: …`.
STANDS = re.compile(r"(ADOPT|CAPACITY|CHECK|COMPILE|DEFINE|LOAD|OBSERVE|OVERFLOW|PUSH|SCHEDULES|SHOW)\b")
DRAWERS = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}


def test_every_module_opens_with_one_sentence() -> None:
    def opens_well(text: str | None) -> bool:
        first = (text or "").strip().split("\n\n")[0].split("\n")[0] if text else ""
        whole = (text or "").strip().split("\n\n")[0].rstrip()
        return bool(first) and whole[-1:] in ".:?!)`"

    silent = [name(path) for path in modules() if not opens_well(opening(path))]
    assert silent == []


def test_only_packages_say_where_they_stand_in_the_flow() -> None:
    openings = {name(path): opening(path) or "" for path in modules() if path.stem != "__init__"}
    assert [path for path, text in openings.items() if STANDS.match(text)] == []
    assert STANDS.match("SHOW to machines, written down: schemas.") is not None


def test_no_module_is_called_after_a_drawer() -> None:
    assert [name(path) for path in modules() if path.stem in DRAWERS or path.parent.name in DRAWERS] == []
