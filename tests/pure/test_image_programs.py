"""The image and the chart start what the units of systemd start, by the same words."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.helm.__main__ import PROGRAMS, TARGET, text
from tests.architecture.sources import ROOT

UNITS = ROOT / "deploy" / "systemd"
RUN = ROOT / "deploy" / "container" / "run"
NO_PROGRAMS = {"agent", "migrate"}
PYTHON = "/usr/lib/spillway/venv/bin/python3 "
# In one container each program has a socket's folder of its own to name, and its own number of processes.
OF_ITS_OWN = re.compile(r" --worker-tmp-dir \S+| --workers \d+| --(bind|uds) \S+| -[Ww](s| -db)\b")


def unit(name: str) -> str:
    """The file of a unit."""
    return (UNITS / f"spillway-{name}.service").read_text()


def programs() -> dict[str, str]:
    """What each unit starts, by the word that the image has for it."""
    found = {path.stem.removeprefix("spillway-") for path in UNITS.glob("*.service")} - NO_PROGRAMS
    return {"front" if name == "console" else name: name for name in sorted(found)}


def started_by_unit(name: str) -> str:
    """Its command, with the values that the unit itself gives."""
    words = re.search(r"^ExecStart=(.+)$", unit(name), re.MULTILINE)
    assert words
    given = dict(re.findall(r"^Environment=(\w+)=(.*)$", unit(name), re.MULTILINE))
    command = re.sub(r"\$\{(\w+)\}", lambda found: given[found[1]], words[1])
    return command.removeprefix(PYTHON).removeprefix("/usr/sbin/")


def started_by_image(word: str, folder: Path) -> str:
    """The words of the program that the image starts; here a shell that prints them stands in its place."""
    (folder / "venv" / "bin").mkdir(parents=True)
    for program in (folder / "venv" / "bin" / "python3", folder / "haproxy"):
        program.write_text(f'#!/bin/sh\n[ {program.name} = python3 ] || printf "{program.name} "\necho "$@"\n')
        program.chmod(0o755)
    script = RUN.read_text().replace("cd /usr/lib/spillway", f"cd {folder}")
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "SPILLWAY_RUN": "/run/spillway"}
    command = ["/bin/sh", "-c", script, "run", word]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(("word", "name"), programs().items())
def test_the_image_starts_a_program_as_its_unit_does(word: str, name: str, tmp_path: Path) -> None:
    ours, theirs = started_by_image(word, tmp_path), started_by_unit(name)
    assert OF_ITS_OWN.sub("", ours) == OF_ITS_OWN.sub("", theirs)


def test_any_other_word_is_a_command_of_the_console(tmp_path: Path) -> None:
    assert started_by_image("migrate", tmp_path) == "manage.py migrate"


def test_the_compose_file_and_the_chart_start_every_program() -> None:
    services: dict[str, Any] = yaml.safe_load((RUN.parent / "compose.yaml").read_text())["services"]
    commands = {service["command"][0] for service in services.values() if "command" in service}
    assert set(programs()) <= commands
    assert {"front", "web", "events", *PROGRAMS} == set(programs())


def test_the_schema_of_the_chart_has_the_settings_of_today() -> None:
    assert TARGET.read_text() == text(), "run `python -m deploy.helm`"
