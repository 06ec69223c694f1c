"""The node's memory: what was confirmed last, kept in state.json so that an agent's death loses nothing."""

from __future__ import annotations

import dataclasses
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from apps.agent.release.releases import write_file, write_json


@dataclass(frozen=True)
class Confirmed:
    """`release` names the directory; `confirmed_at` is Unix seconds; `last_known_good` names a release that soaked."""

    generation: int = 0
    digest: str = ""
    release: str = ""
    confirmed_at: float = 0.0
    reloads: int = 0
    last_known_good: str = ""
    last_error: str = ""


def load(path: Path) -> Confirmed:
    """Read state.json; a missing or damaged one is an empty memory."""
    try:
        data = json.loads(path.read_text())
        names = {field.name for field in dataclasses.fields(Confirmed)}
        return Confirmed(**{key: value for key, value in data.items() if key in names})
    except (OSError, ValueError, TypeError, AttributeError):
        return Confirmed()


def save(path: Path, confirmed: Confirmed) -> None:
    """Replace state.json atomically."""
    write_json(path, dataclasses.asdict(confirmed))


def probe_secret(path: Path) -> str:
    """The probe path's secret segment of this node, made once."""
    try:
        found = path.read_text().strip()
        if found.isalnum():
            return found
    except OSError:
        pass
    secret = secrets.token_hex(16)
    write_file(path, secret.encode() + b"\n")
    return secret
