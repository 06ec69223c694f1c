"""Every module opens with one sentence that says where it stands, and no module is a drawer for odds and ends."""

from __future__ import annotations

from tests.architecture.sources import modules, name, opening

DRAWERS = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}


def test_every_module_opens_with_one_sentence() -> None:
    def opens_well(text: str | None) -> bool:
        first = (text or "").strip().split("\n\n")[0].split("\n")[0] if text else ""
        whole = (text or "").strip().split("\n\n")[0].rstrip()
        return bool(first) and whole[-1:] in ".:?!)`"

    silent = [name(path) for path in modules() if not opens_well(opening(path))]
    assert silent == []


def test_no_module_is_called_after_a_drawer() -> None:
    assert [name(path) for path in modules() if path.stem in DRAWERS or path.parent.name in DRAWERS] == []
