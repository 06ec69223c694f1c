"""A real Caddy, built from Go's module proxy."""

from __future__ import annotations

from pathlib import Path

from tests import golang

MODULE = Path(__file__).parent / "conformance" / "caddy_server"
PROGRAM = golang.CACHE.with_name("bin") / "caddy"


def why_not_built() -> str:
    """Why there is no program; empty where there is one."""
    return golang.why_not_built(PROGRAM, "github.com/caddyserver/caddy/v2/cmd/caddy", MODULE)
