"""One thread of a process never waits, so that whoever asks whether the process lives has an answer.

Requests that wait for a lock or for a database that fell silent would else hold all of them. Where all others have
been taken for a while and none has come free, a further request is refused at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from apps.core.errors import Unavailable

PATIENCE_S = 2.0
NEVER_WAIT = frozenset({"/healthz"})
FULL = "Every thread of this process has been waiting for a while. Nothing was done; try again in a moment."


class OneThreadFree:
    """Middleware, the outermost; `WEB_THREADS` is how many threads the server has, 0 where nobody counts."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._came_free = threading.Condition()
        self._taken = 0
        self._moved_at = 0.0

    def __call__(self, request: HttpRequest) -> HttpResponse:
        most = settings.WEB_THREADS - 1
        if most < 1 or request.path in NEVER_WAIT:
            return self.get_response(request)
        self._take(most)
        try:
            return self.get_response(request)
        finally:
            self._give_back()

    def _take(self, most: int) -> None:
        with self._came_free:
            patience = self._moved_at + PATIENCE_S - time.monotonic()
            if not self._came_free.wait_for(lambda: self._taken < most, timeout=max(patience, 0.0)):
                raise Unavailable(FULL)
            self._taken += 1
            self._moved_at = time.monotonic()

    def _give_back(self) -> None:
        with self._came_free:
            self._taken -= 1
            self._moved_at = time.monotonic()
            self._came_free.notify()
