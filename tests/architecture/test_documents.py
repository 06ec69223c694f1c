"""Documents say what the code says, and README stays a page."""

from __future__ import annotations

from apps.definitions.shapes.base import pages
from apps.definitions.shapes.kinds import SHAPES, file_name
from controlplane.configuration import page
from tests.architecture.sources import ROOT

LONGEST_README = 7_000  # bytes: what somebody reads who has just come here


def test_the_page_of_the_configuration_is_what_the_settings_read() -> None:
    written = (ROOT / "docs" / "operate" / "configuration.md").read_text()
    assert written == page(), "write it anew: .venv/bin/python -m controlplane.configuration"


def test_the_pages_of_reference_are_what_the_shapes_declare() -> None:
    folder = ROOT / "docs" / "reference"
    wanted = {file_name(kind): pages.page(kind, shape) for kind, shape in SHAPES.items()}
    written = {path.name: path.read_text() for path in folder.glob("*.md")}
    assert written == wanted, "write them anew: .venv/bin/python -m apps.definitions.shapes"


def test_the_readme_is_one_page() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= LONGEST_README


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if page not in navigation} == set()
