"""What is known of the request being served: its id, and where its changes come from."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from django.core.signals import request_finished
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from apps.core import log_context

T = TypeVar("T")
_GIVEN = re.compile(r"[A-Za-z0-9-]{8,64}")
_current: ContextVar[str] = ContextVar("request_id", default="")
_answers: ContextVar[dict[Hashable, Any] | None] = ContextVar("answers", default=None)


@dataclass(frozen=True, slots=True)
class ChangeOrigin:
    """Where a pipeline says that a change came from: the commit and the URL of its run; both may be empty."""

    commit: str = ""
    pipeline_url: str = ""


_origin: ContextVar[ChangeOrigin] = ContextVar("change_origin", default=ChangeOrigin())  # noqa: B039 - it is frozen


def change_origin() -> ChangeOrigin:
    """Where the change that is being made came from, as its caller said; the audit log keeps it."""
    return _origin.get()


def set_change_origin(origin: ChangeOrigin) -> None:
    """Say where the changes of this request come from; forgotten when it ends."""
    _origin.set(origin)


def request_id() -> str:
    """Id of the request being served, empty outside of one."""
    return _current.get()


@contextmanager
def answers_kept() -> Iterator[None]:
    """Within it `asked_once` asks once: while a page is made that only reads."""
    kept = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(kept)


def asked_once(key: Hashable, ask: Callable[[], T]) -> T:
    """The answer to a question that many parts of a page ask; asked each time outside of `answers_kept`."""
    answers = _answers.get()
    if answers is None:
        return ask()
    if key not in answers:
        answers[key] = ask()
    found: T = answers[key]
    return found


class RequestIdMiddleware:
    """Takes `X-Request-ID` from the front when it is well-formed, else makes one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        _current.set(given if _GIVEN.fullmatch(given) else secrets.token_hex(8))
        response = self.get_response(request)
        response["X-Request-ID"] = request_id()
        return response


@receiver(request_finished)
def forget(**_: object) -> None:
    """Django logs a request that failed after every middleware, so what is known of it is kept until it is over."""
    _current.set("")
    _origin.set(ChangeOrigin())
    log_context.forget()
