"""Liveness in Redis: one hash per node that expires; losing Redis loses nothing but the last ten seconds."""

from __future__ import annotations

import functools
import json
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

import redis
from django.conf import settings

from apps.drivers.proxy.contract import CounterReading
from apps.observe.collect.deltas import Counts, Key, counted
from apps.observe.collect.percentiles import from_json

EXPIRES = 60  # seconds
# After a failure Redis is left alone for so long, so that a page waits for a dead one at most once.
REST = 2.0
_rests_until = 0.0

logger = logging.getLogger(__name__)
NAMES = tuple(field.name for field in fields(Counts))
LATENCY = NAMES.index("latency")
_values = attrgetter(*NAMES)
_JSON = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class LiveNode:
    """The window of one node that ended at `at` (Unix seconds by the collector's clock).

    `in_use` are the shares (0–1) of its processor time and connections that it used then; empty where it does not say.
    """

    at: float
    rows: Mapping[Key, Counts]
    in_use: Mapping[str, float] = field(default_factory=dict)


@functools.cache
def client() -> redis.Redis:
    """One pool of connections per process, with short patience."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=0.5, socket_timeout=0.5, decode_responses=True
    )


def forgive() -> None:
    """Ask Redis again at once."""
    global _rests_until  # noqa: PLW0603 - see above
    _rests_until = 0.0


def live_key(node_id: int) -> str:
    """Where a node's rates live."""
    return f"spillway:live:{node_id}"


def totals_key(node_id: int) -> str:
    """Where a node's cumulative counters live, for the exporter."""
    return f"spillway:totals:{node_id}"


def encode(counts: Counts) -> str:
    """Short text: the values in the order of the fields."""
    return _JSON.encode(_values(counts))


def decode(text: str) -> Counts:
    """What `encode` wrote; raises ValueError, TypeError or IndexError for anything else."""
    values = json.loads(text)
    values[LATENCY] = from_json(values[LATENCY])
    return Counts(*values)


def write(windows: Mapping[int, LiveNode], readings: Mapping[int, CounterReading]) -> None:
    """Replace the hashes of these nodes, in one trip; raises redis.RedisError."""
    pipe = client().pipeline(transaction=True)
    for node_id, window in windows.items():
        live = {f"{kind}:{name}": encode(counts) for (kind, name), counts in window.rows.items()}
        head = {"at": str(window.at), "in_use": json.dumps(dict(window.in_use))}
        _replace(pipe, live_key(node_id), {**head, **live})
    for node_id, reading in readings.items():
        _replace(pipe, totals_key(node_id), totals_of(reading))
    pipe.execute()


def _replace(pipe: Any, key: str, mapping: Mapping[str, str]) -> None:
    pipe.delete(key)
    if mapping:
        pipe.hset(key, mapping=mapping)
        pipe.expire(key, EXPIRES)


def totals_of(reading: CounterReading) -> dict[str, str]:
    """The reading's cumulative counters as fields `kind:id`; routes are left out, too many for metrics."""
    totals = {}
    for row in reading.rows:
        if row.kind != "route":
            latency = dict(reading.latency_buckets.get(row.object_id, {})) if row.kind == "backend" else {}
            gauges = row.connections_now, row.queue_now, row.latency_ms
            values: list[Any] = [row.parent_id, 0.0, *counted(row), *gauges, latency, row.status, row.check]
            counts = Counts(*values)
            totals[f"{row.kind}:{row.object_id}"] = encode(counts)
    return totals


def read(node_ids: Iterable[int], keys: Iterable[Key]) -> dict[int, LiveNode] | None:
    """The live rows of these objects on these nodes, one trip; None when Redis is away or was a moment ago."""
    names = [f"{kind}:{name}" for kind, name in keys]
    nodes = list(node_ids)
    answers = _ask([(live_key(node_id), ["at", *names]) for node_id in nodes])
    if answers is None:
        return None
    found = {}
    for node_id, (at, *texts) in zip(nodes, answers, strict=True):
        if at is not None:
            rows = {_key(name): decode(text) for name, text in zip(names, texts, strict=True) if text is not None}
            found[node_id] = LiveNode(float(at), rows)
    return found


def read_kind(node_ids: Iterable[int], kind: str) -> dict[int, LiveNode] | None:
    """All live rows of one kind on these nodes; None when Redis is away."""
    nodes, prefix = list(node_ids), f"{kind}:"
    answers = _hashes([live_key(node_id) for node_id in nodes], "live numbers")
    if answers is None:
        return None
    found = {}
    for node_id, answer in zip(nodes, answers, strict=True):
        if "at" in answer:
            rows = {_key(name): decode(text) for name, text in answer.items() if name.startswith(prefix)}
            found[node_id] = LiveNode(float(answer["at"]), rows, json.loads(answer.get("in_use", "{}")))
    return found


def read_totals(node_ids: Iterable[int]) -> dict[int, dict[Key, Counts]]:
    """Cumulative counters of every node that has some; empty when Redis is away."""
    nodes = list(node_ids)
    answers = _hashes([totals_key(node_id) for node_id in nodes], "counters for metrics")
    if answers is None:
        return {}
    return {
        node_id: {_key(name): decode(text) for name, text in answer.items()}
        for node_id, answer in zip(nodes, answers, strict=True)
        if answer
    }


def _hashes(keys: list[str], what: str) -> list[dict[str, str]] | None:
    """Whole hashes in one trip; None when Redis is away, and the log says which numbers are missing."""
    try:
        pipe = client().pipeline(transaction=False)
        for key in keys:
            pipe.hgetall(key)
        answers: list[dict[str, str]] = pipe.execute()
    except redis.RedisError as error:
        logger.warning("no %s: %s", what, error)
        return None
    return answers


def _key(name: str) -> Key:
    kind, _, object_id = name.partition(":")
    return kind, object_id


def _ask(questions: list[tuple[str, list[str]]]) -> list[list[str | None]] | None:
    global _rests_until  # noqa: PLW0603 - see above
    if not questions:
        return []
    if time.monotonic() < _rests_until:
        return None
    try:
        pipe = client().pipeline(transaction=False)
        for key, names in questions:
            pipe.hmget(key, names)
        answers: list[list[str | None]] = pipe.execute()
    except redis.RedisError as error:
        _rests_until = time.monotonic() + REST
        logger.warning("no live numbers: %s", error)
        return None
    return answers
