"""What changed since an answer, for any number of readers, each of which names the one that it saw."""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

FIELDS = (
    "kind", "object_id", "parent_id", "requests", "status_2xx", "status_3xx", "status_4xx", "status_5xx",
    "connections", "connections_now", "queue_now", "bytes_in", "bytes_out", "errors", "latency_ms", "status", "check",
)  # fmt: skip
CHECK = FIELDS.index("check")
TURN = re.compile(r"[0-9]{1,15}")
TOOK = re.compile(r"(.*) in (\d+) ms")
# How long a check took differs a little each time. That is told with the row's next change, at the latest after this.
SMALL_MS, PATIENCE_S = 10, 60.0
# Names of rows that are gone are kept for readers who have not heard of it yet; rather than more, all is told again.
MOST_GONE = 20_000
Key = tuple[Any, ...]  # what names a row: its kind, and its object's id
Values = tuple[Any, ...]  # a row's values in the order of FIELDS


class Changes:
    """The last answer, and in which turn each of its parts last changed.

    A token names a turn of one epoch of counters in one life of the agent: of any other one all is told.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin("")

    def _begin(self, epoch: str) -> None:
        self._epoch = epoch
        self._name = secrets.token_hex(8)
        self._turn = 0
        self._rows: dict[Key, tuple[int, float, Values]] = {}
        self._gone: dict[Key, int] = {}
        self._latency: dict[str, tuple[int, Mapping[str, int]]] = {}
        self._state: tuple[int, Mapping[str, Any]] = (0, {})

    def tell(self, since: str, state: Mapping[str, Any], samples: Mapping[str, Any]) -> dict[str, Any]:
        """GET /v1/reading: the state and the samples, less what the reader of the answer `since` knows."""
        with self._lock:
            if samples["epoch"] != self._epoch or len(self._gone) > MOST_GONE:
                self._begin(samples["epoch"])
            self._turn += 1
            self._take(state, samples)
            name, _, turn = since.rpartition("-")
            known = name == self._name and TURN.fullmatch(turn) is not None and 0 < int(turn) < self._turn
            after = int(turn) if known else 0
            told = {
                **{key: value for key, value in samples.items() if key not in ("rows", "latency_buckets")},
                "fields": FIELDS,
                "rows": [values for changed, _, values in self._rows.values() if changed > after],
                "gone": [key for key, changed in self._gone.items() if changed > after] if known else [],
                "latency_buckets": {pool: counts for pool, (at, counts) in self._latency.items() if at > after},
            }
            return {
                "token": f"{self._name}-{self._turn}",
                "base": since if known else "",
                "clock": state["clock"],
                "state": self._state[1] if self._state[0] > after else None,
                "samples": told,
            }

    def _take(self, state: Mapping[str, Any], samples: Mapping[str, Any]) -> None:
        said = {key: value for key, value in state.items() if key != "clock"}
        if said != self._state[1]:
            self._state = self._turn, said
        self._take_rows(samples["rows"])
        for pool, counts in samples["latency_buckets"].items():
            if pool not in self._latency or self._latency[pool][1] != counts:
                self._latency[pool] = self._turn, counts

    def _take_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        moment, there = time.monotonic(), set()
        for row in rows:
            values = tuple([row[name] for name in FIELDS])
            key = values[:2]
            there.add(key)
            before = self._rows.get(key)
            if before is None or (before[2] != values and not self._may_wait(before, values, moment)):
                self._rows[key] = self._turn, moment, values
                self._gone.pop(key, None)
        for key in self._rows.keys() - there:
            del self._rows[key]
            self._gone[key] = self._turn

    @staticmethod
    def _may_wait(before: tuple[int, float, Values], values: Values, moment: float) -> bool:
        """Whether nothing moved but how long the last check took, and that by little."""
        _, told_at, told = before
        if moment - told_at >= PATIENCE_S or told[:CHECK] != values[:CHECK]:
            return False
        now, then = TOOK.fullmatch(values[CHECK]), TOOK.fullmatch(told[CHECK])
        if now is None or then is None or now.group(1) != then.group(1):
            return False
        less, more = sorted((int(now.group(2)), int(then.group(2))))
        return more <= SMALL_MS or more < 2 * less
