"""Go's own commands, for what tests take from its module proxy; git does not see where that is kept."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / "var" / "go"
_USUAL = "/usr/local/go/bin/go"
BUILT_IN_S = 1200


def go(*words: str, cwd: str | Path, patience_s: int) -> subprocess.CompletedProcess[str] | str:
    """What `go` did with these words, or a sentence why it could not be asked."""
    program = shutil.which("go") or (_USUAL if Path(_USUAL).exists() else None)
    if program is None:
        return "Go is not installed."
    settings = os.environ | {
        "GOMODCACHE": str(CACHE),
        "GOCACHE": str(CACHE.with_name("go-build")),
        "GOFLAGS": "-modcacherw",
        "GOTOOLCHAIN": "local",
    }
    try:
        return subprocess.run(
            [program, *words], cwd=cwd, env=settings, capture_output=True, text=True, timeout=patience_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"Go has not done it in {patience_s} seconds."


def why_not_built(program: Path, package: str, module: Path) -> str:
    """Why there is no such program of a package that a module requires; empty where there is one."""
    if program.exists():
        return ""
    program.parent.mkdir(parents=True, exist_ok=True)
    words = ("build", "-mod=mod", "-ldflags", "-s -w", "-o", str(program), package)
    built = go(*words, cwd=module, patience_s=BUILT_IN_S)
    if isinstance(built, str):
        return built
    return built.stderr[-300:] if built.returncode else ""
