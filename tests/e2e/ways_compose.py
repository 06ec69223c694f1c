"""The compose file, gone to the letter of docs/operate/install.md with podman, from nothing to a first route."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.ways_in import PASSWORD, ROOT, Tried, blocks

COMPOSE = ROOT / "var" / "deploy-venv" / "bin" / "podman-compose"
FILE = ROOT / "deploy" / "container" / "compose.yaml"
IMAGES = ("localhost/spillway:latest", "docker.io/library/postgres:15-bookworm", "docker.io/library/redis:7-bookworm")
IN_THE_PAGE = "docker compose --file deploy/container/compose.yaml --profile demo"
PROJECT = "spillway-way-in"


def missing() -> str:
    """Why this machine cannot go this way, as a sentence; empty when it can."""
    if not shutil.which("podman"):
        return "apt install podman"
    if not COMPOSE.exists():
        return "run `make var/deploy-venv/.stamp` first"
    absent = [name for name in IMAGES if subprocess.run(["podman", "image", "exists", name], check=False).returncode]
    return f"no image {', '.join(absent)}: `make image` and `podman pull` bring them" if absent else ""


@dataclass
class Shell:
    """What a person types, in a copy of the folder that they would type it in."""

    folder: Path

    def sh(self, text: str, told: str = "") -> str:
        """What a block prints. Raises AssertionError with everything that it said."""
        ours = f"{COMPOSE} --project-name {PROJECT} --file deploy/container/compose.yaml --profile demo"
        lines = f'compose="{ours}"\n{text.replace(IN_THE_PAGE, ours)}'
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines], cwd=self.folder, input=told, env=os.environ, timeout=1500,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        return done.stdout


@contextmanager
def shell() -> Iterator[Shell]:
    """Nothing of the project is there before, and nothing afterwards."""
    with tempfile.TemporaryDirectory(prefix="sw-compose-") as name:
        found = Shell(Path(name))
        (found.folder / "deploy" / "container").mkdir(parents=True)
        shutil.copy(FILE, found.folder / "deploy" / "container")
        try:
            yield found
        except BaseException:
            print(found.sh("podman ps --all; for each in $(podman ps -aq); do podman logs --tail 20 $each; done 2>&1"))
            raise
        finally:
            found.sh("$compose down --volumes --timeout 5 || true")


def compose() -> Tried:
    """Everything starts, the console is ready, and a node serves the first route."""
    if why := missing():
        raise AssertionError(f"this way needs more: {why}")
    tried = Tried("12", "compose with podman")
    made, ready, used = blocks("Container image")
    (settings, start), (person, apply, ask) = made.split("\n\n"), used.split("\n\n")
    with shell() as typed:
        typed.sh(settings)
        with tried.step("start, until the console is ready"):
            typed.sh(start.replace("up --detach", "up --detach --no-deps"))
            typed.sh(ready)
        with tried.step("a first route answers"):
            typed.sh(person.replace("exec web", "exec -T web"), told=f"{PASSWORD}\n")
            typed.sh(apply)
            assert "It works." in typed.sh(ask)
    return tried
