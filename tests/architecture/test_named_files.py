"""Pages and documents send people only to files of the project that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, name

FOLDERS = ("apps", "controlplane", "deploy", "docs", "frontend", "tests")
# A path from the root of the project; not the end of a URL, of a package, or of somebody else's path.
NAMED = re.compile(rf"(?<![\w./:~@{{-])(?:{'|'.join(FOLDERS)})/[\w./*-]*[\w*/]")


def readable() -> Iterator[Path]:
    """Every document, and every template of a page."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in FOLDERS:
        found = (path for ending in ("*.md", "*.html") for path in (ROOT / folder).rglob(ending))
        yield from sorted(path for path in found if "node_modules" not in path.parts)


def missing_in(text: str) -> list[str]:
    """Paths that name nothing; the beginning of one name (`docs/decisions/0009`) is enough, and patterns are."""
    return [path for path in NAMED.findall(text) if not any(ROOT.glob(path.rstrip("/") + "*"))]


def test_every_file_that_a_page_or_a_document_names_is_there() -> None:
    found = {name(path): missing_in(path.read_text()) for path in readable()}
    assert {path: missing for path, missing in found.items() if missing} == {}


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("python manage.py apply deploy/examples/nothing.yaml", ["deploy/examples/nothing.yaml"]),
        ("See `docs/no-such-page.md`.", ["docs/no-such-page.md"]),
        ("See docs/use/clouds.md, apps/core/ and docs/decisions/0009.", []),
        ("https://example.com/docs/no-such-page.md is somebody else's.", []),
    ],
)
def test_the_check_for_names_sees_what_is_not_there(text: str, missing: list[str]) -> None:
    assert missing_in(text) == missing
