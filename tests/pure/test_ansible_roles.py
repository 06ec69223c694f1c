"""The roles for Ansible: variables are described and used, nothing secret is shown, settings are the console's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import environment, settings  # noqa: F401 - reading the settings fills what is known
from controlplane.admin import findings
from tests.architecture.sources import ROOT

ANSIBLE = ROOT / "deploy" / "ansible"
ROLES = sorted(path.name for path in (ANSIBLE / "roles").iterdir())
GROUPS = {"spillway_consoles": "spillway_console", "spillway_nodes": "spillway_agent"}
# Files and objects may hold keys; which variables are secret for themselves, their descriptions say.
HOLD_KEYS = {"spillway_console_tls_file", "spillway_console_objects"}
# Where secrets come from: a file that is read, the file of the settings, a token that is made.
SOURCES = {"slurp", r"settings\.j2", "enrol"}
# A name, a sentence or an outcome, and nothing that was secret.
HARMLESS = re.compile(
    r"\b\w+ is (not )?(changed|skipped)|\b\w+[.](rc|stdout_lines|stderr_lines)\b|^- \w+ \| length.*$", re.MULTILINE
)


def read(path: Path) -> Any:
    """The document."""
    return yaml.safe_load(path.read_text())


def options(role: str) -> dict[str, dict[str, Any]]:
    """Its variables, as they are described."""
    found: dict[str, dict[str, Any]] = read(ANSIBLE / "roles" / role / "meta" / "argument_specs.yml")["argument_specs"][
        "main"
    ]["options"]
    return found


def defaults(role: str) -> dict[str, Any]:
    """What its variables are where nobody says anything."""
    path = ANSIBLE / "roles" / role / "defaults" / "main.yml"
    return read(path) if path.exists() else {}


def texts(role: str) -> str:
    """What it does, as it is written."""
    folder = ANSIBLE / "roles" / role
    return "\n".join(path.read_text() for part in ("tasks", "templates") for path in sorted((folder / part).glob("*")))


def tasks(found: Any) -> Iterator[dict[str, Any]]:
    """Every task, those of blocks as well."""
    for each in found:
        yield from tasks(each["block"]) if "block" in each else [each]


def tasks_of(role: str) -> Iterator[dict[str, Any]]:
    """Every task of the role."""
    for path in sorted((ANSIBLE / "roles" / role / "tasks").glob("*.yml")):
        yield from tasks(read(path))


@pytest.mark.parametrize("role", ROLES)
def test_every_variable_is_described_used_and_has_the_default_that_its_description_says(role: str) -> None:
    described = options(role)
    assert set(defaults(role)) == {name for name, each in described.items() if not each.get("required")}
    assert defaults(role) == {name: each["default"] for name, each in described.items() if not each.get("required")}
    used = set(re.findall(rf"\b{role}_\w+", texts(role)))
    kept = {each["register"] for each in tasks_of(role) if "register" in each}
    kept |= {name for each in tasks_of(role) for name in each.get("ansible.builtin.set_fact", {})}
    kept |= {name for each in tasks_of(role) for name in each.get("vars", {})}
    assert used - kept == set(described)


def shown_by(found: list[dict[str, Any]], secret: set[str]) -> list[str]:
    """Names of tasks that would show one of these variables, or what hidden tasks made of them."""
    hidden = [each for each in found if each.get("no_log") is True]
    marked = [each for each in found if "no_log" in each]
    made = {each["register"] for each in marked if "register" in each}
    made |= {name for each in marked for name in each.get("ansible.builtin.set_fact", {})}
    held = re.compile(rf"\b({'|'.join(sorted(secret | made | SOURCES))})\b")
    calls = ("ansible.builtin.include_role", "ansible.builtin.include_tasks", "ansible.builtin.assert")

    def says(task: dict[str, Any]) -> str:
        return yaml.safe_dump({key: value for key, value in task.items() if key not in ("name", "when", "register")})

    rest = [each for each in found if each not in hidden and not set(calls) & set(each)]
    return [each["name"] for each in rest if held.search(HARMLESS.sub("", says(each)))]


@pytest.mark.parametrize("role", ROLES)
def test_no_task_shows_a_secret_or_what_was_made_of_one(role: str) -> None:
    secret = {name for name, each in options(role).items() if each.get("no_log")} | HOLD_KEYS
    found = list(tasks_of(role))
    assert shown_by(found, secret) == []
    hidden = [each["name"] for each in found if each.get("no_log")]
    bare = [{**each, "no_log": False} for each in found]
    assert set(hidden) <= set(shown_by(bare, secret)), "each would show something"


@pytest.mark.parametrize("role", ROLES)
def test_a_command_says_when_it_changes_something(role: str) -> None:
    def says(task: dict[str, Any]) -> bool:
        return "changed_when" in task or "creates" in task["ansible.builtin.command"]

    assert [each["name"] for each in tasks_of(role) if "ansible.builtin.command" in each and not says(each)] == []


def test_settings_that_the_role_sets_and_that_the_example_sets_are_known_and_have_their_shapes() -> None:
    example = read(ANSIBLE / "inventory" / "group_vars" / "spillway_consoles" / "main.yml")["spillway_console_settings"]
    named = set(re.findall(r"\b(?:SPILLWAY|TERRAFORM)_[A-Z_]+\b", texts("spillway_console") + str(example)))
    assert named - set(environment.KNOWN) - findings.ALSO_KNOWN == set()
    assert [name for name, value in example.items() if not environment.KNOWN[name].shape.fits(value)] == []


@pytest.mark.parametrize("group", GROUPS)
def test_the_example_says_all_that_must_be_said_and_nothing_that_no_role_knows(group: str) -> None:
    found = ANSIBLE / "inventory" / "group_vars"
    given = read(found / group / "main.yml" if (found / group).is_dir() else found / f"{group}.yml")
    described = options(GROUPS[group])
    assert set(given) <= set(described)
    assert {name for name, each in described.items() if each.get("required")} <= set(given)
    assert (
        set(read(ANSIBLE / "inventory" / "hosts.yml"))
        == set(GROUPS)
        == {each["hosts"] for each in read(ANSIBLE / "site.yml")}
    )
