"""How many requests the console answered, how, and how fast: counted in each process, summed in Redis by machine.

Redis may forget all of it; Prometheus takes that for a counter that began again.
"""

from __future__ import annotations

import bisect
import math
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import redis
from django.http import HttpRequest, HttpResponse

from apps.core.clock import now
from apps.observe.live import store as live

BOUNDS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, math.inf)
KINDS = ("page", "api")
MACHINES = ("/api/", "/hooks/")
# Who asks these asks them all the time, and waits for nothing.
UNCOUNTED = frozenset({"/healthz", "/readyz", "/metrics"})
KEPT_S = 7 * 86400
MINUTES = 5
HOSTS = "spillway:http"

_counts: Counter[str] = Counter()
_lock = threading.Lock()
HERE = socket.gethostname()[:80]


class Counted:
    """Middleware: from the first line of ours to the answer, before it is sent."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = time.monotonic()
        response = self.get_response(request)
        if request.path not in UNCOUNTED:
            note(request.path, response.status_code, time.monotonic() - began)
        return response


def note(path: str, status: int, took_s: float) -> None:
    """Count one request."""
    kind = "api" if path.startswith(MACHINES) else "page"
    bound = BOUNDS_S[bisect.bisect_left(BOUNDS_S, took_s)]
    with _lock:
        _counts.update({f"{kind}:class:{status // 100}xx": 1, f"{kind}:le:{bound:g}": 1})
        _counts[f"{kind}:ms"] += round(took_s * 1000)


def flush() -> None:
    """Bring to Redis what was counted since the last time; where Redis is away it waits here."""
    with _lock:
        counted = Counter(_counts)
        _counts.clear()
    if not counted:
        return
    mine, minute = _of(HERE), _minute(int(now().timestamp()) // 60)
    try:
        with live.client().pipeline(transaction=True) as pipe:
            pipe.sadd(HOSTS, HERE)
            for name, amount in counted.items():
                pipe.hincrby(mine, name, amount)
                pipe.hincrby(minute, name, amount)
            pipe.expire(mine, KEPT_S)
            pipe.expire(minute, 60 * (MINUTES + 2))
            pipe.execute()
    except redis.RedisError:
        with _lock:
            _counts.update(counted)


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one kind: responses by class, and how many took at most so long, not summed up; and all of it in seconds."""

    classes: Counter[str] = field(default_factory=Counter)
    within: Counter[float] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def requests(self) -> int:
        """All of them."""
        return self.classes.total()

    def percentile_s(self, share: float) -> float | None:
        """The bound below which this share of the requests ended; None without requests."""
        wanted, passed = share * self.within.total(), 0
        for bound in BOUNDS_S:
            passed += self.within[bound]
            if passed and passed >= wanted:
                return bound
        return None


def totals() -> dict[str, dict[str, Counts]]:
    """By machine and kind, since Redis counts. Raises redis.RedisError."""
    client: Any = live.client()
    counted = {host: client.hgetall(_of(host)) for host in sorted(client.smembers(HOSTS))}
    if gone := [host for host, counts in counted.items() if not counts]:
        client.srem(HOSTS, *gone)
    return {host: _kinds([counts]) for host, counts in counted.items() if counts}


def lately() -> dict[str, Counts]:
    """By kind, of all machines, in the last five whole minutes and the present one. Raises redis.RedisError."""
    newest = int(now().timestamp()) // 60
    client: Any = live.client()
    return _kinds([client.hgetall(_minute(newest - back)) for back in range(MINUTES + 1)])


def _kinds(hashes: Iterable[dict[str, str]]) -> dict[str, Counts]:
    summed: Counter[str] = Counter()
    for each in hashes:
        summed.update({name: int(amount) for name, amount in each.items()})
    found = {}
    for kind in KINDS:
        classes = Counter({f"{number}xx": summed[f"{kind}:class:{number}xx"] for number in range(1, 6)})
        within = Counter({bound: summed[f"{kind}:le:{bound:g}"] for bound in BOUNDS_S})
        found[kind] = Counts(classes, within, summed[f"{kind}:ms"] / 1000)
    return found


def _of(host: str) -> str:
    return f"{HOSTS}:of:{host}"


def _minute(number: int) -> str:
    return f"{HOSTS}:minute:{number}"
