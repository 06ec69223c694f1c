"""Why a command does nothing more; and what people are asked."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

LEAST_PASSPHRASE = 12


class Refused(Exception):
    """A sentence that says why, and what to do."""


def secret_line(path: Path | None, prompt: str, *, new: bool) -> str:
    """A passphrase or password from the first line of a file, else from the terminal. Raises Refused."""
    if path is not None:
        try:
            found = path.read_text().split("\n", 1)[0]
        except (OSError, UnicodeDecodeError):
            raise Refused(f"{path} cannot be read.") from None
    elif sys.stdin.isatty():
        found = getpass.getpass(f"{prompt}: ")
        if new and getpass.getpass(f"{prompt} again: ") != found:
            raise Refused("The two differ. Nothing was done.")
    else:
        found = sys.stdin.readline().rstrip("\n")
    if new and len(found) < LEAST_PASSPHRASE:
        raise Refused(f"{prompt}: at least {LEAST_PASSPHRASE} characters.")
    return found


def answer(question: str, default: str, *, ask: bool) -> str:
    """What a person answers; the default where nobody is to be asked or nothing is said."""
    if not ask or not sys.stdin.isatty():
        return default
    return input(f"{question} [{default}]: ").strip() or default


def agrees(question: str) -> bool:
    """Yes or no; no where nobody can be asked."""
    return sys.stdin.isatty() and input(f"{question} [y/N]: ").strip().lower() in ("y", "yes")
