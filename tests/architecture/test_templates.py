"""Templates and scripts keep the promises of the pages: htmx 4 only, nothing that the CSP refuses, small."""

from __future__ import annotations

import gzip
import re

import pytest

from apps.web import bundles
from apps.web.bundles import without_comments
from tests.architecture.sources import ROOT, name
from tests.e2e.pages import PAGES

FRONTEND = ROOT / "frontend"
TEMPLATES = sorted((FRONTEND / "templates").rglob("*.html"))
SCRIPTS = sorted((FRONTEND / "static" / "js").glob("*.js"))
STYLES = sorted((FRONTEND / "static" / "css").glob("*.css"))

HTMX_2_ONLY = re.compile(
    r"\bhx-(?:ext|sse|ws|vars|params|prompt|disinherit|inherit|request|history|disabled-elt)\s*=|\b(?:sse|ws)-(?:swap|connect|send)\b"
    r"|htmx:[a-z]+[A-Z]|hx-swap=[\"']morph"
)
EVALUATES = re.compile(r"\bhx-on\b|\bhx-on:|hx-(?:vals|headers)[^=]*=[\"'](?:js|javascript):|hx-trigger=[\"'][^\"']*\[")
REFUSED_BY_CSP = re.compile(
    r"\sstyle\s*=|<style\b|\son[a-z]+\s*=\s*[\"']|href=[\"']javascript:|(?:src|href)=[\"']data:|(?:src|href)=[\"']https?://",
    re.IGNORECASE,
)
INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", re.IGNORECASE)
# Words that a whole page or form is the object of; every other button names its own.
ALONE = {"Apply", "Cancel", "Close", "Continue", "Save", "Search", "Simulate", "Undo"}
BUTTON = re.compile(r"<button\b((?:[^>\"]|\"[^\"]*\")*)>(.*?)</button>", re.DOTALL)
UNESCAPED = re.compile(r"\|\s*(?:safe|safeseq)\b|autoescape\s+off")
EVERY_PAGE_BYTES, ONE_MORE_BYTES = 15_000, 8_500
# What only some pages fetch, each by itself.
FETCHED = {"brush.js", "capabilities.js", "cards.js", "chart.js", "drafts.js", "offers.js", "passkey.js",
           "selection.js", "sliders.js", "tables.js"}  # fmt: skip
FIRST_PAGE_BYTES = 120_000


def offending(pattern: re.Pattern[str]) -> list[str]:
    """`file:line text` of every line in a template that the pattern finds."""
    return [
        f"{name(path)}:{number} {line.strip()}"
        for path in TEMPLATES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]


def test_templates_use_nothing_that_only_htmx_2_knew() -> None:
    assert offending(HTMX_2_ONLY) == []


def test_templates_hold_no_attribute_whose_value_would_be_evaluated() -> None:
    assert offending(EVALUATES) == []


def test_what_is_asked_while_somebody_types_takes_the_place_of_what_was_asked_before() -> None:
    """Else an answer to what was typed a moment ago stands there last, since htmx asks once more and drops the rest."""
    tags = [
        (name(path), tag)
        for path in TEMPLATES
        for tag in re.findall(r"[^<]*hx-trigger=\"[^\"]*\b(?:input|change)\b[^<]*", path.read_text())
    ]
    assert [each for each in tags if 'hx-sync="this:replace"' not in each[1]] == []
    assert tags


def test_templates_hold_nothing_that_the_content_security_policy_refuses() -> None:
    assert offending(REFUSED_BY_CSP) + offending(INLINE_SCRIPT) == []


def test_templates_escape_everything() -> None:
    assert offending(UNESCAPED) == []


def bare_words(text: str) -> list[str]:
    """What buttons say in one word, read out included: `Run`, where it should be `Run statement`."""
    found = []
    for attributes, inner in BUTTON.findall(text):
        shown = re.sub(r"<[^>]*>", "", re.sub(r"\{\{.*?\}\}", "an object", inner))
        said = [part.strip() for part in re.split(r"\{%.*?%\}", shown)]
        if "aria-label" not in attributes and "disabled" not in attributes.split():
            found += [part for part in said if part and len(part.split()) == 1 and part not in ALONE]
    return found


def test_buttons_say_a_verb_and_an_object() -> None:
    others = [path for path in TEMPLATES if path.name != "styleguide.html"]
    assert {name(path): bare for path in others if (bare := bare_words(path.read_text()))} == {}


@pytest.mark.parametrize(
    ("button", "bare"),
    [
        ('<button class="btn">Run</button>', ["Run"]),
        ('<button>{% include "icon.html" %}Run</button>', ["Run"]),
        ("<button>{% if stored %}Save{% else %}Create{% endif %}</button>", ["Create"]),
        ("<button>Run statement</button>", []),
        ('<button>End<span class="sr"> the silence</span></button>', []),
        ("<button>Drain {{ region }}</button>", []),
        ("<button>{{ action }}</button>", []),
        ('<button aria-label="Close the menu">x</button>', []),
    ],
)
def test_a_button_of_one_bare_word_is_found(button: str, bare: list[str]) -> None:
    assert bare_words(button) == bare


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (HTMX_2_ONLY, '<div hx-ext="sse">'),
        (HTMX_2_ONLY, '<div sse-swap="numbers">'),
        (HTMX_2_ONLY, '<div hx-disabled-elt="this">'),
        (EVALUATES, '<a hx-on:click="x()">'),
        (EVALUATES, """<a hx-vals='js:{"a": 1}'>"""),
        (EVALUATES, """<a hx-trigger="keyup[key=='Enter']">"""),
        (REFUSED_BY_CSP, '<p style="color: red">'),
        (REFUSED_BY_CSP, '<a onclick="x()">'),
        (INLINE_SCRIPT, "<script>x()</script>"),
        (UNESCAPED, "{{ text|safe }}"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)


def test_no_template_is_longer_than_150_lines() -> None:
    assert [name(path) for path in TEMPLATES if len(path.read_text().splitlines()) > 150] == []


def test_every_component_says_its_parameters() -> None:
    components = [path for path in TEMPLATES if path.parent.name == "components"]
    assert [name(path) for path in components if "{% comment %}" not in path.read_text()] == []


def test_scripts_of_every_page_stay_below_15_kilobytes_and_each_of_some_pages_below_8() -> None:
    sizes = {path.name: len(without_comments(path.read_text()).encode()) for path in SCRIPTS}
    assert sum(size for path, size in sizes.items() if path not in FETCHED) < EVERY_PAGE_BYTES
    assert {path: sizes[path] for path in FETCHED if sizes[path] >= ONE_MORE_BYTES} == {}


def test_the_joined_files_have_every_script_of_all_pages_and_every_style_sheet() -> None:
    assert {f"js/{path.name}" for path in SCRIPTS if path.name not in FETCHED} == set(bundles.SCRIPTS)
    assert {f"css/{path.name}" for path in STYLES} == {name for name in bundles.SHEETS if name.startswith("css/")}
    texts = [(FRONTEND / "static" / name).read_text() for name in bundles.SCRIPTS]
    assert [text for text in texts if re.search(r"^(?:import|export)\b", text, re.MULTILINE)] == []


def test_own_scripts_evaluate_no_text_and_open_each_with_a_sentence() -> None:
    texts = {name(path): path.read_text() for path in SCRIPTS}
    assert [path for path, text in texts.items() if re.search(r"\beval\(|new Function", text)] == []
    assert [
        path for path, text in texts.items() if not re.match(r"/\* SHOW: .+\. \*/|/\* SHOW: [^\n]+\.? \*/", text)
    ] == []


def test_style_sheets_stay_in_layers_and_load_nothing_from_elsewhere() -> None:
    assert [name(path) for path in STYLES if re.search(r"url\([\"']?(?:https?:|data:|//)", path.read_text())] == []
    assert [name(path) for path in STYLES if not path.read_text().startswith("@layer")] == []


NAMED = re.compile(r'class="([^"]*)"')
# What no style sheet needs to say: for tests to find it by, or half of a name that a number completes.
UNSTYLED = {"load-", "pools-now", "run", "two-edits", "weekday", "act"}


def test_every_class_that_a_template_names_is_one_of_a_style_sheet_or_a_script() -> None:
    known = set(re.findall(r"\.([a-z][\w-]*)", "".join(path.read_text() for path in STYLES)))
    known |= set(re.findall(r"[\w-]+", "".join(path.read_text() for path in SCRIPTS)))
    wrong = {
        f"{name(path)}: {each}"
        for path in TEMPLATES
        for classes in NAMED.findall(re.sub(r"\{%.*?%\}|\{\{.*?\}\}", " ", path.read_text()))
        for each in set(classes.split()) - known - UNSTYLED
    }
    assert wrong == set()


def test_every_page_belongs_to_a_section_of_the_navigation() -> None:
    links = (FRONTEND / "templates" / "components" / "navigation.html").read_text()
    named = {each for names in re.findall(r' names="([^"]*)"', links) for each in names.split()}
    assert set(PAGES) - named == {"definition", "used-by"}  # of any kind of objects


def test_every_icon_that_a_template_names_is_in_the_list() -> None:
    known = set((FRONTEND / "static" / "icons" / "lucide.txt").read_text().split())
    named = {
        icon
        for path in TEMPLATES
        for icon in re.findall(r"components/icon\.html\" with name=\"([^\"]+)\"|\bicon=\"([^\"]+)\"", path.read_text())
        for icon in icon
        if icon
    }
    assert named - known == set()


def test_the_first_page_costs_less_than_120_kilobytes() -> None:
    vendor = FRONTEND / "static" / "vendor"
    if not vendor.exists():
        pytest.skip("run `make frontend` first")
    texts = [vendor / "htmx.min.js", vendor / "icons.svg", *map(bundles.fresh, bundles.KINDS)]
    html_bytes = 12_000  # the overview of the demo, compressed, has about 8 000
    font = (vendor / "inter.woff2").stat().st_size  # the other one is for code, which the first page has none of
    assert font + sum(len(gzip.compress(path.read_bytes())) for path in texts) + html_bytes < FIRST_PAGE_BYTES


def test_the_lock_file_has_a_hash_for_every_package_and_no_address() -> None:
    lock = (FRONTEND / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert lock.count('"integrity": "sha512-') == lock.count('"node_modules/')
