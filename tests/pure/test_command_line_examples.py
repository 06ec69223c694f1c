"""Every `spillway …` of the pipelines and the guide that people copy is one that the command understands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apps.cli.client.main import parser

ROOT = Path(__file__).resolve().parents[2]
PIPELINES = sorted((ROOT / "deploy" / "examples" / "ci").glob("*.yml"))
GUIDE = ROOT / "docs" / "use" / "command-line.md"
SUBSTITUTION = re.compile(r"\$\([^()]*\)")


def scripts_in(value: Any) -> Iterator[str]:
    """Every text of a document of YAML."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from scripts_in(each)


def commands_in(script: str) -> Iterator[list[str]]:
    """The words after each `spillway` that a shell would start; what another command prints is one word."""
    for line in SUBSTITUTION.sub("printed", script).replace("\\\n", " ").splitlines():
        if "spillway " not in line:
            continue
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        command: list[str] = []
        for word in [*words, ";"]:
            if word.strip("();<>|&"):
                command.append(word)
                continue
            if command[:1] == ["spillway"]:
                yield command[1:]
            command = []


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.name)
def test_a_pipeline_plans_and_applies_with_words_that_the_command_knows(path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = [parser().parse_args(words) for script in scripts_in(document) for words in commands_in(script)]
    assert {asked.command for asked in found} == {"plan", "apply"}
    assert all(asked.manager for asked in found if asked.command == "plan")
    assert all(asked.plan and asked.commit and asked.wait for asked in found if asked.command == "apply")


def test_the_guide_shows_words_that_the_command_knows() -> None:
    shown = re.findall(r"^ {4}(?:\$ )?(spillway .+)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    found = [parser().parse_args(words) for line in shown for words in commands_in(line)]
    assert len(found) >= 8


@pytest.mark.parametrize("line", ["spillway plan --file", "x=1; spillway plan -f a --prune-all", "spillway planned"])
def test_words_that_the_command_does_not_know_are_found(line: str) -> None:
    with pytest.raises(SystemExit):
        [parser().parse_args(words) for words in commands_in(line)]


def test_only_what_a_shell_would_start_is_a_command() -> None:
    script = (
        'code=0; spillway plan -f "$FILE" > plan.md || code=$?\n'
        'echo "spillway apply"\n'
        'spillway apply --reason \\\n "$(cat a | head)"'
    )
    assert list(commands_in(script)) == [["plan", "-f", "$FILE"], ["apply", "--reason", "printed"]]
