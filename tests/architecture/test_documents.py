"""Documents say what the code says, and README stays a page."""

from __future__ import annotations

import re

from django.urls import URLPattern

from apps.definitions.shapes.base import pages
from apps.definitions.shapes.kinds import SHAPES, file_name
from apps.web import urls
from apps.web.kit.help import PAGES, page_of
from controlplane.configuration import page
from tests.architecture.sources import ROOT
from tests.conformance import capabilities_page, haproxy_features

LONGEST_README = 7_000  # bytes: what somebody reads who has just come here
LONGEST_LINE = 120  # characters of prose, so that a diff shows what changed


def test_the_page_of_the_configuration_is_what_the_settings_read() -> None:
    written = (ROOT / "docs" / "operate" / "configuration.md").read_text()
    assert written == page(), "write it anew: .venv/bin/python -m controlplane.configuration"


def test_the_pages_of_reference_are_what_the_shapes_declare() -> None:
    folder = ROOT / "docs" / "reference"
    wanted = {file_name(kind): pages.page(kind, shape) for kind, shape in SHAPES.items()}
    # Those are no kinds of documents.
    others = {"gateway-api.md", "metrics.md", haproxy_features.PAGE.name, capabilities_page.PAGE.name}
    written = {path.name: path.read_text() for path in folder.glob("*.md") if path.name not in others}
    assert written == wanted, "write them anew: .venv/bin/python -m apps.definitions.shapes"


def test_the_readme_is_one_page() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= LONGEST_README


def long_lines(text: str) -> list[str]:
    """Lines of prose that are too long; tables, code, pictures and headings cannot be broken."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    whole = ("|", "    ", "![", "#")
    return [line for line in prose.splitlines() if len(line) > LONGEST_LINE and not line.startswith(whole)]


def test_lines_of_prose_are_short() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    found = {str(path.relative_to(ROOT)): long_lines(path.read_text()) for path in pages}
    assert {path: lines for path, lines in found.items() if lines} == {}
    assert long_lines("word " * 30 + "\n| " + "cell " * 30) == ["word " * 30]


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if page not in navigation} == set()


def test_help_leads_to_documents_and_headings_that_exist() -> None:
    def leads_nowhere(target: str) -> bool:
        path, _, anchor = target.partition("#")
        page = ROOT / "docs" / f"{path}.md"
        headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE) if page.exists() else []
        return not headings or (anchor != "" and anchor not in {"-".join(title.lower().split()) for title in headings})

    assert [target for target in PAGES.values() if leads_nowhere(target)] == []
    assert leads_nowhere("use/traffic#no-such-heading")


def test_every_page_has_help() -> None:
    names = {str(pattern.name) for pattern in urls.urlpatterns if isinstance(pattern, URLPattern)}
    assert {name for name in names if not page_of(name)} <= {
        "search",
        "options",
        "siblings",
        "badges",
        "switch-account",
        "stop-impersonating",
    }


def test_the_map_names_modules_and_functions_that_exist() -> None:
    """Each `module.py: name`, and each further `name` in the same cell, which is one of the same module."""

    def lost(path: str, names: list[str]) -> list[str]:
        module = ROOT / "apps" / path
        if not module.is_file():
            return [path]
        text = module.read_text()
        return [f"{path}: {each}" for each in names if not re.search(rf"^\s*(def|class) {each}\b", text, re.MULTILINE)]

    written = (ROOT / "docs" / "develop" / "map.md").read_text()
    found = re.findall(r"`([\w/]+/\w+\.py)(?:: (\w+))?`((?:, `\w+`)*)", written)
    wanted = [(path, [*filter(None, [first]), *re.findall(r"\w+", more)]) for path, first, more in found]
    assert len(wanted) > 20
    assert [each for path, names in wanted if not path.startswith("tests/") for each in lost(path, names)] == []
    assert lost("agent/push.py", ["push", "no_such_function"]) == ["agent/push.py: no_such_function"]
