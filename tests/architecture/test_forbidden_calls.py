"""Words that would open a hole in a wall do not occur: shell=True, raw SQL from values, |safe, default secrets."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT, modules, name, tree


def test_no_subprocess_uses_a_shell() -> None:
    found = [
        f"{name(path)}:{node.lineno}"
        for path in modules("apps", "controlplane", "deploy", "frontend")
        if "shell" in path.read_text()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.keyword) and node.arg == "shell" and ast.unparse(node.value) != "False"
    ]
    assert found == []


def test_no_template_switches_escaping_off() -> None:
    templates = (ROOT / "frontend" / "templates").rglob("*.html")
    assert [
        name(path) for path in templates if "|safe" in path.read_text() or "autoescape off" in path.read_text()
    ] == []


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    """Ask a fresh process whether the project's settings load under this environment."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY_")}
    return subprocess.run(
        [sys.executable, "-c", "import controlplane.settings"],
        cwd=ROOT,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.processes
@pytest.mark.slow(reason="a process reads the settings of production")
def test_production_refuses_the_development_secret() -> None:
    refused = start(SPILLWAY_ENV="production")
    assert refused.returncode != 0
    assert "SPILLWAY_SECRET_KEY" in refused.stderr


@pytest.mark.processes
@pytest.mark.slow(reason="a process reads the settings of production")
def test_production_starts_with_a_secret_of_its_own() -> None:
    assert start(SPILLWAY_ENV="production", SPILLWAY_SECRET_KEY="x" * 50).returncode == 0
