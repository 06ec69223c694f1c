"""Who may touch a state: each attempt of a run gets a password of its own, kept as a digest."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from apps.stacks.models import StackRun

USERNAME = "run-{}"


def mint(run: StackRun) -> str:
    """A new password of the run; every earlier one is worth nothing from now on."""
    password = secrets.token_urlsafe(32)
    # Digests are written here and below alone: who stores a row read before would give the former one back.
    run.password_digest = _digest(password)
    run.save(update_fields=("password_digest",))
    return password


def take_away(run_id: int) -> None:
    """From now on the run has no password until its next attempt."""
    StackRun.objects.filter(pk=run_id).update(password_digest="")


def holder_of(stack_id: int, username: str, password: str) -> StackRun | None:
    """The open run of the stack that this password was given to, None for everybody else."""
    run = StackRun.objects.filter(stack_id=stack_id, finished_at=None).exclude(password_digest="").first()
    known = run.password_digest if run else _digest("")
    right = hmac.compare_digest(_digest(password), known)
    return run if right and run is not None and username == USERNAME.format(run.pk) else None


def _digest(password: str) -> str:
    """SHA-256 is enough: 256 random bits are not found by trying."""
    return hashlib.sha256(password.encode("utf-8", "surrogatepass")).hexdigest()
