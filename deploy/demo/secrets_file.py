"""The demo's secrets: made of chance on the first start, kept for the owner alone, never a default."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

# Ten letters that cannot be mistaken for one another when a person types them from a terminal.
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


@dataclass(frozen=True)
class Secrets:
    """What the demo must not share: Django's key, the pepper of token digests, Redis, the person's password."""

    secret_key: str
    token_pepper: str
    redis_password: str
    username: str
    password: str


def _password() -> str:
    return "-".join("".join(secrets.choice(LETTERS) for _ in range(5)) for _ in range(4))


def read_or_create(path: Path) -> Secrets:
    """The secrets of this var directory."""
    if path.exists():
        return Secrets(**json.loads(path.read_text()))
    made = Secrets(
        secret_key=secrets.token_urlsafe(48),
        token_pepper=secrets.token_urlsafe(32),
        redis_password=secrets.token_urlsafe(24),
        username="admin",
        password=_password(),
    )
    write_private(path, asdict(made))
    return made


def write_private(path: Path, value: object) -> None:
    """Write JSON that only the owner can read, all of it or nothing."""
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.chmod(0o600)
    fresh.write_text(json.dumps(value, indent=1) + "\n")
    fresh.replace(path)
