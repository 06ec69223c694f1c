"""Which code this process runs: the version, and a digest of its modules, as clones of one version may differ."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from apps.agent import VERSION

_ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def version() -> str:
    """For example `0.1.0+3f2a9c1b`; the same on every machine that has the same modules."""
    digest = hashlib.sha256()
    for folder in ("apps", "controlplane"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            digest.update(str(path.relative_to(_ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{VERSION}+{digest.hexdigest()[:8]}"
