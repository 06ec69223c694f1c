"""The only console is lost while two nodes serve; a backup brings it back on an empty machine, and no request fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from controlplane.admin import environment_file
from tests.e2e.installation import ROOT, Installation, route, wait_until
from tests.servers import postgresql

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.slow(reason="a console is installed, saved, killed and restored beside real nodes"),
]
NODES = ("us-1", "eu-1")
PASSPHRASE = "correct horse battery staple"


class Console:
    """One machine: a folder for settings, certificates and what is made at run time."""

    def __init__(self, nodes: Installation, name: str, database: str) -> None:
        self.nodes, self.folder, self.database = nodes, nodes.folder / name, database
        self.folder.mkdir()
        self.settings = self.folder / "etc" / "environment"
        self.passphrase = nodes.folder / "passphrase"
        self.passphrase.write_text(PASSPHRASE)

    def admin(self, *words: str, code: int = 0) -> str:
        """`spillway-admin` on this machine, which has no variables of others."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        command = [sys.executable, "-m", "controlplane.admin", "--environment", str(self.settings), *words]
        done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
        assert done.returncode in (0, code), done.stdout + done.stderr
        return done.stdout

    def init(self) -> None:
        """As somebody does on a new machine."""
        said = ["--url", "https://console.example", "--database", self.database, "--redis", self.nodes.redis_url]
        said += ["--var", str(self.folder / "var"), "--password-file", str(self.passphrase)]
        self.admin("init", "--yes", *said)

    def restore(self, file: Path) -> str:
        """From nothing but the backup and its passphrase."""
        pki = self.folder / "etc" / "pki"
        here = {
            "SPILLWAY_DATABASE_URL": self.database,
            "SPILLWAY_VAR": str(self.folder / "var"),
            "SPILLWAY_AGENT_CA": str(pki / "ca.pem"),
            "SPILLWAY_AGENT_CERTIFICATE": str(pki / "control-plane.pem"),
            "SPILLWAY_AGENT_KEY": str(pki / "control-plane.key"),
        }
        changed = [word for name, value in here.items() for word in ("--set", f"{name}={value}")]
        return self.admin("restore", str(file), "--passphrase-file", str(self.passphrase), *changed, code=1)

    def start(self) -> None:
        """Its worker and its scheduler."""
        self.nodes.environment = (
            os.environ
            | environment_file.read(self.settings)
            | {
                "CELERY_BROKER_URL": self.nodes.redis_url,
                "PYTHONPATH": str(ROOT),
            }
        )
        for name in ("worker", "schedule"):
            self.nodes.start(name)

    def lose(self) -> None:
        """Nothing of it is left."""
        for name in ("worker", "schedule"):
            self.nodes.kill(name)
        shutil.rmtree(self.folder)

    def apply(self, objects: list[dict[str, Any]]) -> None:
        """As an operator at the shell."""
        file = self.nodes.folder / "document.json"
        file.write_text(json.dumps({"objects": objects}))
        command = [sys.executable, "manage.py", "apply", str(file)]
        done = subprocess.run(
            command, cwd=ROOT, env=self.nodes.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def traffic(nodes: Installation) -> Iterator[Counter[tuple[int, str]]]:
    """Requests to both nodes all the time; what they answered."""
    answers: Counter[tuple[int, str]] = Counter()
    ended = threading.Event()

    def ask(node: str) -> None:
        while not ended.wait(0.03):
            answers[nodes.get(node, "/")] += 1

    threads = [threading.Thread(target=ask, args=(node,)) for node in NODES]
    for each in threads:
        each.start()
    try:
        yield answers
    finally:
        ended.set()
        for each in threads:
            each.join()


@contextmanager
def databases(engine: str, folder: Path) -> Iterator[tuple[str, str]]:
    """URLs of two empty databases, one for each machine."""
    if engine == "sqlite":
        yield f"sqlite:///{folder}/old/var/s.sqlite3", f"sqlite:///{folder}/new/var/s.sqlite3"
        return
    with tempfile.TemporaryDirectory(prefix="spillway-") as cluster, postgresql(Path(cluster)) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE old")
            connection.execute("CREATE DATABASE new")
        base = url.rpartition("/")[0]
        yield f"{base}/old", f"{base}/new"


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_lost_console_comes_back_and_no_request_fails(engine: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="sw-"))
    nodes = Installation(folder, "", 2.0)
    try:
        with databases(engine, folder) as (old, new):
            _lose_and_restore(nodes, engine, old, new)
    except AssertionError:
        print(nodes.logs())
        raise
    finally:
        nodes.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _lose_and_restore(nodes: Installation, engine: str, old: str, new: str) -> None:
    file = nodes.folder / "backup"
    console = Console(nodes, "old", old)
    for name in ("redis", *NODES):
        nodes.start(name)
    console.init()
    console.start()
    spare = [each for each in nodes.document() if each["kind"] != "Node" or each["name"] in NODES]
    console.apply(spare)
    wait_until(lambda: all(nodes.get(node, "/") == (200, "blue") for node in NODES), "both nodes serve")
    with traffic(nodes) as answers:
        began = time.monotonic()
        console.admin("backup", "--to", str(file), "--passphrase-file", str(console.passphrase))
        saved_s = time.monotonic() - began
        console.apply([{"kind": "Route", "name": "later", "spec": route("/later", "green")}])
        wait_until(lambda: all(nodes.get(node, "/later") == (200, "green") for node in NODES), "a later change")
        ran = {node: nodes.state(node).generation for node in NODES}
        console.lose()
        lost = time.monotonic()
        other = Console(nodes, "new", new)
        said = other.restore(file)
        restored_s = time.monotonic() - lost
        assert "ok       Tables" in said
        other.start()
        other.apply([{"kind": "Route", "name": "anew", "spec": route("/anew", "green")}])
        wait_until(lambda: all(nodes.get(node, "/anew") == (200, "green") for node in NODES), "a change after it")
        changed_s = time.monotonic() - lost
        assert all(nodes.get(node, "/later") == (200, "blue") for node in NODES), "what came after the backup is gone"
        assert all(nodes.state(node).generation >= ran[node] for node in NODES), "no node is asked to go back"
    size, failed = file.stat().st_size / 1e6, answers.total() - answers[200, "blue"]
    print(
        f"{engine}: backup {size:.1f} MB in {saved_s:.1f} s, restored {restored_s:.1f} s after the loss, first change "
        f"on both nodes after {changed_s:.1f} s; {answers.total()} requests, {failed} failed"
    )
    assert set(answers) == {(200, "blue")}
    assert answers.total() > 200
