"""A real Caddy, built from Go's module proxy."""

from __future__ import annotations

from pathlib import Path

from tests.golang import CACHE, go

MODULE = Path(__file__).parent / "conformance" / "caddy_server"
PROGRAM = CACHE.with_name("bin") / "caddy"
BUILT_IN_S = 1200


def why_not_built() -> str:
    """Why there is no program; empty where there is one."""
    if PROGRAM.exists():
        return ""
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    words = ("build", "-mod=mod", "-ldflags", "-s -w", "-o", str(PROGRAM), "github.com/caddyserver/caddy/v2/cmd/caddy")
    built = go(*words, cwd=MODULE, patience_s=BUILT_IN_S)
    if isinstance(built, str):
        return built
    return built.stderr[-300:] if built.returncode else ""
