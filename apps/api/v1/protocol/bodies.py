"""How many large bodies are read at the same time, so that one account never has every thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.http import HttpRequest
from rest_framework.exceptions import Throttled

# Whoever sends less is done before anybody could notice; that is nearly everybody.
LARGE = 64 * 1024
# Of the 4 threads of a process (deploy/systemd).
OF_ACCOUNT, OF_PROCESS = 2, 3
AGAIN_S = 2

_under_way: Counter[int] = Counter()
_lock = threading.Lock()


@contextmanager
def turn(request: HttpRequest, account: int) -> Iterator[None]:
    """Raise Throttled, before a byte is read, for a large body while too many are read already."""
    if not _is_large(request):
        yield
        return
    with _lock:
        if _under_way[account] >= OF_ACCOUNT or _under_way.total() >= OF_PROCESS:
            raise Throttled(
                wait=AGAIN_S, detail=f"The server is reading other large bodies; send this one again in {AGAIN_S} s."
            )
        _under_way[account] += 1
    try:
        yield
    finally:
        with _lock:
            _under_way[account] -= 1


def _is_large(request: HttpRequest) -> bool:
    """Also what does not say how large it is."""
    length = request.META.get("CONTENT_LENGTH") or ""
    return "HTTP_TRANSFER_ENCODING" in request.META or (length.isdigit() and int(length) > LARGE)
