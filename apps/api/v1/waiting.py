"""SHOW to machines: who may hold a thread while a change becomes live, and waiting after a transaction's end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

from apps.api.v1 import requests
from apps.fleet.selectors import fleet_ids
from apps.rollouts.selectors import wait_until_live

# Of the 4 threads of a process that work (deploy/systemd): one is always left for requests that do not wait.
OF_ACCOUNT, OF_PROCESS = 2, 3

_waiting: Counter[int] = Counter()
_lock = threading.Lock()


@contextmanager
def turn(request: HttpRequest, account: int) -> Iterator[bool]:
    """Whether a request that asks to wait may; one that may not is answered as things stand."""
    if "wait" not in request.GET:
        yield True
        return
    with _lock:
        may = _waiting[account] < OF_ACCOUNT and _waiting.total() < OF_PROCESS
        _waiting[account] += may
    try:
        yield may
    finally:
        with _lock:
            _waiting[account] -= may


def taken_out(request: HttpRequest) -> int:
    """Take `wait` out of the query, so that the view answers at once; returns its seconds. Raises Invalid."""
    seconds = requests.wait(Request(request))
    query = request.GET.copy()
    query.pop("wait", None)
    request.GET = query  # type: ignore[assignment] # Django's own is immutable, and so is this from here on
    return seconds


def until_live(response: HttpResponse, seconds: int) -> None:
    """Wait for the generations that the answer names, and say in a header whether they are live."""
    named = response.headers.get("X-Spillway-Generation", "")
    if seconds and named:
        fleets = [part.partition("=")[0] for part in named.split(", ")]
        live = wait_until_live(fleet_ids(fleets), None, seconds)
        response["X-Spillway-Live"] = "true" if live else "false"
