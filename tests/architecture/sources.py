"""Which files the architecture tests look at, read and parsed once."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("apps", "controlplane", "deploy", "frontend", "tests")


@functools.cache
def modules(*folders: str) -> tuple[Path, ...]:
    """Every Python module below the folders (all of the project's by default), migrations left out."""
    found = (path for folder in folders or CODE for path in (ROOT / folder).rglob("*.py"))
    return tuple(sorted(path for path in found if not {"migrations", "node_modules"} & set(path.parts)))


@functools.cache
def tree(path: Path) -> ast.Module:
    """The parsed module."""
    return ast.parse(path.read_text())


def name(path: Path) -> str:
    """Path relative to the project, for messages."""
    return str(path.relative_to(ROOT))
