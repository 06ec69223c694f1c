"""What a line of the log is about: the account and the rollout that the process works on just now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_subjects: ContextVar[Mapping[str, str]] = ContextVar("log_subjects", default={})  # noqa: B039 - never changed in place


@contextmanager
def about(**subjects: object) -> Iterator[None]:
    """Lines of this block are about these as well: `about(rollout=17)`."""
    token = _subjects.set(_with(subjects))
    try:
        yield
    finally:
        _subjects.reset(token)


def note(**subjects: object) -> None:
    """The same until `forget`, which ends a request, or until the block around ends."""
    _subjects.set(_with(subjects))


def forget() -> None:
    """Lines are about nothing in particular again."""
    _subjects.set({})


def subjects() -> Mapping[str, str]:
    """What is known now."""
    return _subjects.get()


def _with(more: Mapping[str, object]) -> Mapping[str, str]:
    return {**_subjects.get(), **{name: str(value) for name, value in more.items()}}
