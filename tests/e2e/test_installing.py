"""What `make` says where a system has another Python, or packages of other names."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHELL = ("sh", "grep", "tr", "printf")

pytestmark = pytest.mark.e2e


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH with a shell and nothing else."""
    for name in SHELL:
        found = shutil.which(name)
        assert found
        (tmp_path / name).symlink_to(found)
    return tmp_path


def _python(path: Path, name: str, version: str) -> None:
    """A program of this name that is Python for as far as it is asked."""
    (path / name).write_text(f"#!/bin/sh\necho {version}\n")
    (path / name).chmod(0o755)


def _run(path: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(ROOT / "deploy" / script), *words]
    machine = {"PATH": str(path), "SYSTEM_PYTHON": str(path / "system" / "python3")}
    return subprocess.run(command, env=machine, capture_output=True, text=True, check=False)


def test_the_named_python_is_taken_where_it_fits() -> None:
    done = _run(Path("/usr/bin"), "choose_python.sh", sys.executable)
    assert (done.returncode, done.stdout.strip()) == (0, sys.executable)


@pytest.mark.parametrize(("name", "version"), [("python3.9", "3.9"), ("python3.10", "3.10"), ("python3.15", "3.15")])
def test_another_one_is_refused_with_what_to_do(path: Path, name: str, version: str) -> None:
    _python(path, name, version)
    done = _run(path, "choose_python.sh", name)
    assert done.returncode == 1
    assert f"{name} is Python {version}. A console needs Python 3.11, 3.12, 3.13 or 3.14." in done.stderr
    assert "make up PYTHON=python3.12" in done.stderr


def test_without_a_name_the_systems_own_is_taken_where_it_fits(path: Path) -> None:
    (path / "system").mkdir()
    _python(path, "python3", "3.12")
    _python(path / "system", "python3", "3.11")
    assert _run(path, "choose_python.sh").stdout.strip() == f"{path}/system/python3"
    _python(path / "system", "python3", "3.9")
    assert _run(path, "choose_python.sh").stdout.strip() == f"{path}/python3"


def test_else_python3_is_taken_and_where_that_is_too_old_the_newest_that_fits(path: Path) -> None:
    for version in ("3.11", "3.12", "3.9"):
        _python(path, f"python{version}", version)
    _python(path, "python3", "3.11")
    assert _run(path, "choose_python.sh").stdout.strip() == f"{path}/python3"
    _python(path, "python3", "3.9")
    assert _run(path, "choose_python.sh").stdout.strip() == f"{path}/python3.12"


def test_without_any_that_fits_the_one_that_is_there_is_named(path: Path) -> None:
    assert "There is no python3 in PATH." in _run(path, "choose_python.sh").stderr
    _python(path, "python3", "3.10")
    assert "python3 is Python 3.10, and no newer one is in PATH." in _run(path, "choose_python.sh").stderr


def test_where_there_is_no_apt_packages_have_the_names_of_dnf(path: Path) -> None:
    _python(path, "dnf", "")
    done = _run(path, "packages.sh", "haproxy", "redis-server", "python3-venv", "postgresql")
    assert done.returncode == 1
    assert "Run: sudo dnf install haproxy redis postgresql-server" in done.stderr
    (path / "dnf").unlink()
    assert "Install them with your system's own tool" in _run(path, "packages.sh", "haproxy").stderr
