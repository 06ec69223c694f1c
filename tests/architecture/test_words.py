"""Phrases that are gone stay gone: pages, messages, errors and guides say it in plain English."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, modules, name

# Gone → what to write instead. The first column is a regular expression, matched without regard to case.
PHRASES = {
    r"\bMake (?:it|one|the \w+)\b": "Create …",
    r"\bone (?:a|in a) line\b": "one per line",
    r"\bwhat stands (?:here|there|below)\b": "contents, this version",
    r"\bstands before\b": "attached to",
    r"\bgive your word\b|\byour word is\b": "verify as an operator",
    r"\bwait(?:s|ing)? for (?:its |the |a )?proof\b": "needs verification",
    r"\b(?:is|are) proved\b|\bhas proved\b": "is verified, has verified",
    r"\bpeople come in\b|\bwhoever has it comes in\b": "access is by invitation",
    r"\bsigns nobody in\b": "no longer signs you in",
    r"\btakes? traffic again\b": "resumes traffic",
    r"\bclients want\b": "demand",
    r"\bsent (?:away|elsewhere)\b|\btaken from elsewhere\b": "overflow out, overflow in",
    r"\bthe traffic of now\b|\btraffic of now\b": "current traffic",
    r"\ball the same\b": "anyway",
    r"\bwhat came of it\b": "result",
    r"\bwhat happens by itself\b": "recurring and scheduled actions",
    r"\binstants (?:went|of its own)\b": "runs, timetable",
    r"\bmade up for\b": "caught up",
    r"\bthe chosen\b": "selected",
    r"\bcompared as\b": "path match",
    r"\banswer by itself\b|\banswers by itself\b": "return a fixed response",
    r"\bconnect within\b": "connect timeout",
    r"\bwho does the work\b": "load distribution",
    r"\bwhat gave way\b|\bgave way\b": "bottleneck",
    r"\bhas not the scope\b": "does not have the scope",
    r"\bdoes not work any more\b": "no longer works",
    r"\baudit record\b": "audit log",
    r"\bempty: ": "default: …, or leave empty to …",
    r"\blower[- ]case letters, digits and hyphens[.;]": "lowercase letters, digits and hyphens",
}
GONE = {re.compile(pattern, re.IGNORECASE): instead for pattern, instead in PHRASES.items()}
TEMPLATES = sorted((ROOT / "frontend" / "templates").rglob("*.html"))
COMMENT = re.compile(r"{% comment %}.*?{% endcomment %}|{#.*?#}", re.DOTALL)


def gone_from(text: str) -> list[str]:
    """`phrase → what to write` for each phrase of the table in a text."""
    return [f"{found[0]} → {instead}" for pattern, instead in GONE.items() if (found := pattern.search(text))]


def texts_of(path: Path) -> Iterator[str]:
    """What a module may show: its literals, docstrings left out; those explain the code to developers."""
    tree = ast.parse(path.read_text())
    shown = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in shown:
            yield node.value


@pytest.mark.parametrize("line", ["Make the token", "One a line.", "Clients want", "It is kept in the audit record."])
def test_a_phrase_that_is_gone_is_found(line: str) -> None:
    assert gone_from(line)


@pytest.mark.parametrize("line", ["Create token", "One per line.", "Demand", "Recorded in the audit log."])
def test_plain_english_is_left_alone(line: str) -> None:
    assert gone_from(line) == []


def test_no_template_uses_a_phrase_that_is_gone() -> None:
    found = {name(path): gone_from(COMMENT.sub("", path.read_text())) for path in TEMPLATES}
    assert {path: words for path, words in found.items() if words} == {}


def test_no_page_shows_a_phrase_that_is_gone() -> None:
    found = [
        (name(path), words) for path in modules("apps/web") for text in texts_of(path) if (words := gone_from(text))
    ]
    assert found == []
