"""One thing to do, and which of several is the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: `state` is done, now (the next one) or empty; `url` and `action` are where it is done.

    `command` is what to run on another machine while it is the next.
    """

    title: str
    text: str
    state: str
    url: str = ""
    action: str = ""
    command: str = ""


def in_order(words: Iterable[tuple[str, str, str, str]], done: Iterable[bool], command: str = "") -> list[Step]:
    """The steps of these words (title, text, URL, action); the first that is not done is now, and has the command."""
    found, following = [], True
    for (title, text, url, action), is_done in zip(words, done, strict=True):
        now = following and not is_done
        following = following and is_done
        found.append(
            Step(title, text, "done" if is_done else "now" if now else "", url, action, command if now else "")
        )
    return found
