"""Databases with every migration, for tests to copy: made as the product makes them, and kept for the next run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from deploy.release import migrations
from tests.servers import postgresql_bin

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "var" / "tables"


def make_file(file: Path) -> None:
    """A database of SQLite."""
    kept = _kept("sqlite3")
    if kept.exists():
        shutil.copyfile(kept, file)
        return
    _migrate(f"sqlite:///{file}")
    _keep(file, kept)


def make_tables(url: str, folder: Path) -> None:
    """In a database of PostgreSQL that is empty yet; the folder is for files in between."""
    kept = _kept("sql")
    if kept.exists():
        _run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-o", os.devnull, "-f", str(kept), url)
        return
    _migrate(url)
    _run("pg_dump", "-f", str(folder / "tables.sql"), url)
    _keep(folder / "tables.sql", kept)


def _kept(suffix: str) -> Path:
    """Where they are, by what all of it comes from: our migrations, and those of what is installed."""
    said = (ROOT / "requirements.txt").read_text() + json.dumps(migrations())
    return KEPT / f"{hashlib.sha256(said.encode()).hexdigest()}.{suffix}"


def _migrate(url: str) -> None:
    """Django applies each migration to a picture of all models, which takes a core a quarter of a minute."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "SPILLWAY_DATABASE_URL": url}
    subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, env=environment, check=True)


def _run(program: str, *words: str) -> None:
    subprocess.run([str(postgresql_bin() / program), *words], check=True)


def _keep(file: Path, kept: Path) -> None:
    """Whole or not at all."""
    KEPT.mkdir(parents=True, exist_ok=True)
    new = kept.with_suffix(f".{os.getpid()}")
    shutil.copyfile(file, new)
    new.rename(kept)
