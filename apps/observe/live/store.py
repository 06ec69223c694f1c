"""Liveness in Redis: one hash per node that expires; losing Redis loses nothing but the last ten seconds."""

from __future__ import annotations

import functools
import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

import redis
from django.conf import settings

from apps.core.requests import asked_once
from apps.core.stores import redis_clients
from apps.drivers.proxy.contract import CounterReading, CounterRow
from apps.observe.collect.deltas import Counts, Key
from apps.observe.collect.percentiles import from_json

EXPIRES = 60  # seconds
# Live numbers are means over this many seconds: shorter ones jump, longer ones lag.
WINDOW = 10.0
# The field by which the numbers of a node have a name.
NAME = "name"
# A trip of Redis with more would last too long for its time-out.
NODES_AT_ONCE = 50
# Changes are written into nothing but what they are changes of: hashes may be lost, or another collector's by now.
UPDATE = """
if ARGV[1] == '' or redis.call('HGET', KEYS[1], 'name') ~= ARGV[1] then return 0 end
local last = 3 + 2 * tonumber(ARGV[3])
for at = 4, last, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
for at = last + 1, #ARGV do redis.call('HDEL', KEYS[1], ARGV[at]) end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""
# Of each node when it was read and over how long, and the number and text of each of these rows that it has: most
# objects are on few nodes, and asked for by name on a thousand, their names alone are megabytes.
FIND = """
local found = {}
for at, key in ipairs(KEYS) do
  local values = redis.call('HMGET', key, 'at', 'seconds', unpack(ARGV))
  local row = {}
  if values[1] then row = {values[1], values[2] or ''} end
  for number = 1, values[1] and #ARGV or 0 do
    if values[number + 2] then
      row[#row + 1] = number
      row[#row + 1] = values[number + 2]
    end
  end
  found[at] = row
end
return found
"""
# Of each node the same of all rows whose names begin so.
OF_KIND = """
local found = {}
for at, key in ipairs(KEYS) do
  local head = redis.call('HMGET', key, 'at', 'seconds')
  local row = {}
  if head[1] then row = {head[1], head[2] or ''} end
  for _, name in ipairs(head[1] and redis.call('HKEYS', key) or {}) do
    if string.sub(name, 1, #ARGV[1]) == ARGV[1] then
      row[#row + 1] = name
      row[#row + 1] = redis.call('HGET', key, name)
    end
  end
  found[at] = row
end
return found
"""
# More rows than that are not asked for by name: nodes have a few hundred, and tell all of them.
MOST_NAMED = 100
# After a failure Redis is left alone for so long, so that a page waits for a dead one at most once.
REST = 2.0
_rests_until = 0.0

logger = logging.getLogger(__name__)
NAMES = tuple(field.name for field in fields(Counts))
LATENCY = NAMES.index("latency")
_JSON = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class LiveNode:
    """The window of one node that ended at `at` (Unix seconds by the collector's clock).

    `in_use` are the shares (0–1) of its processor time and connections that it used then; empty where it does not say.
    `stored` says that Redis has lost it, and the database tells of the last bucket. `seconds` is how long the window
    is, 0 where the node was not read before, so that nobody knows what moves.
    """

    at: float
    rows: Mapping[Key, Counts]
    in_use: Mapping[str, float] = field(default_factory=dict)
    stored: bool = False
    seconds: float = WINDOW


@functools.cache
def client() -> redis.Redis:
    """One pool of connections per process, with short patience."""
    return redis_clients.client(
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
    return _text(counts.seconds, counts, counts.latency)


def _text(seconds: float, row: Counts | CounterRow, latency: Mapping[int, int]) -> str:
    # Spelled out: it is done for each row that moves on any node each two seconds, and an encoder takes longer.
    return (
        f"[{_quoted(row.parent_id)},{seconds!r},{row.requests},{row.status_2xx},{row.status_3xx},{row.status_4xx},"
        f"{row.status_5xx},{row.connections},{row.bytes_in},{row.bytes_out},{row.errors},{row.connections_now},"
        f"{row.queue_now},{row.latency_ms},{_JSON.encode(latency) if latency else '{}'},{_quoted(row.status)},"
        f"{_quoted(row.check)}]"
    )


def decode(text: str) -> Counts:
    """What `encode` wrote; raises ValueError, TypeError or IndexError for anything else."""
    values = json.loads(text)
    values[LATENCY] = from_json(values[LATENCY])
    return Counts(*values)


@dataclass(frozen=True, slots=True)
class Change:
    """What moved on one node since the numbers that are called `base` were written; from now on they are called `name`.

    The rows of `window` and `counters` are set; those of `calm` are shown no more, those of `gone` counted no more.
    `everything` makes the whole of both, for a Redis that does not have `base`.
    """

    base: str
    name: str
    window: LiveNode
    counters: CounterReading
    calm: Collection[Key]
    gone: Collection[Key]
    everything: Callable[[], tuple[LiveNode, CounterReading]]


def write_changes(changes: Mapping[int, Change]) -> None:
    """Bring the hashes of these nodes up to date where they are what the change is of, else write them anew.

    Raises redis.RedisError.
    """
    nodes = list(changes)
    for first in range(0, len(nodes), NODES_AT_ONCE):
        some = nodes[first : first + NODES_AT_ONCE]
        pipe = client().pipeline(transaction=False)
        script = client().register_script(UPDATE)
        for node_id in some:
            change = changes[node_id]
            for key, now, over in (
                (live_key(node_id), _live_fields(change.window), change.calm),
                (totals_key(node_id), totals_of(change.counters), change.gone),
            ):
                pairs = [text for pair in {**now, NAME: change.name}.items() for text in pair]
                left = [f"{kind}:{name}" for kind, name in over]
                script(keys=[key], args=[change.base, EXPIRES, len(pairs) // 2, *pairs, *left], client=pipe)
        done = pipe.execute()
        anew = {node_id: changes[node_id] for at, node_id in enumerate(some) if not all(done[2 * at : 2 * at + 2])}
        whole = {node_id: change.everything() for node_id, change in anew.items()}
        if whole:
            names = {node_id: change.name for node_id, change in anew.items()}
            windows = {node_id: window for node_id, (window, _) in whole.items()}
            write(windows, {node_id: counters for node_id, (_, counters) in whole.items()}, names)


def write(
    windows: Mapping[int, LiveNode], readings: Mapping[int, CounterReading], names: Mapping[int, str] | None = None
) -> None:
    """Replace the hashes of these nodes, in one trip; raises redis.RedisError."""
    pipe = client().pipeline(transaction=True)
    for node_id, window in windows.items():
        _replace(pipe, live_key(node_id), _live_fields(window), (names or {}).get(node_id))
    for node_id, reading in readings.items():
        _replace(pipe, totals_key(node_id), totals_of(reading), (names or {}).get(node_id))
    pipe.execute()


def _live_fields(window: LiveNode) -> dict[str, str]:
    head = {"at": str(window.at), "seconds": str(window.seconds), "in_use": _JSON.encode(dict(window.in_use))}
    return head | {f"{kind}:{name}": encode(counts) for (kind, name), counts in window.rows.items()}


def _replace(pipe: Any, key: str, mapping: Mapping[str, str], name: str | None) -> None:
    pipe.delete(key)
    if fields := {**mapping, NAME: name} if name else mapping:
        pipe.hset(key, mapping=fields)
        pipe.expire(key, EXPIRES)


def totals_of(reading: CounterReading) -> dict[str, str]:
    """The reading's cumulative counters as fields `kind:id`; routes are left out, too many for metrics."""
    totals = {}
    for row in reading.rows:
        if row.kind != "route":
            latency = reading.latency_buckets.get(row.object_id, {}) if row.kind == "backend" else {}
            totals[f"{row.kind}:{row.object_id}"] = _text(0.0, row, latency)
    return totals


@dataclass(slots=True)
class _Found:
    """What a page knows of some nodes: when each was read and over how long, and of each row asked for who has it."""

    windows: dict[int, tuple[float, float]] = field(default_factory=dict)
    rows: dict[str, dict[int, Counts]] = field(default_factory=dict)


def read(node_ids: Iterable[int], keys: Iterable[Key]) -> dict[int, LiveNode] | None:
    """The live rows of these objects on these nodes; None when Redis is away or was a moment ago."""
    nodes, wanted = list(node_ids), {f"{kind}:{name}": (kind, name) for kind, name in keys}
    if len(wanted) > MOST_NAMED:
        return _told(nodes, lambda told: told.keys() & wanted.keys())
    found = asked_once(("live rows", *nodes), _Found)
    if not _find(found, nodes, [name for name in wanted if name not in found.rows]):
        return None
    rows: dict[int, dict[Key, Counts]] = {node_id: {} for node_id in found.windows}
    for name, key in wanted.items():
        for node_id, counts in found.rows[name].items():
            rows[node_id][key] = counts
    return {node_id: LiveNode(at, rows[node_id], seconds=over) for node_id, (at, over) in found.windows.items()}


def _find(found: _Found, nodes: list[int], names: list[str]) -> bool:
    """Add rows of these names, which nobody asked for yet; False when Redis is away."""
    if not names:
        return True
    answers = _asked(FIND, nodes, names)
    if answers is None:
        return False
    found.rows |= {name: {} for name in names}
    for node_id, answer in zip(nodes, answers, strict=True):
        if answer:
            at, over, *rest = answer
            found.windows.setdefault(node_id, (float(at), _seconds(over)))
            for number, text in zip(rest[::2], rest[1::2], strict=True):
                found.rows[names[int(number) - 1]][node_id] = decode(text)
    return True


def find_kind(node_ids: Iterable[int], kind: str) -> dict[int, LiveNode] | None:
    """All live rows of one kind on these nodes and nothing else of them; None when Redis is away or was just now."""
    nodes = list(node_ids)
    answers = _asked(OF_KIND, nodes, [f"{kind}:"])
    if answers is None:
        return None
    found = {}
    for node_id, answer in zip(nodes, answers, strict=True):
        if answer:
            at, over, *rest = answer
            rows = {_key(name): decode(text) for name, text in zip(rest[::2], rest[1::2], strict=True)}
            found[node_id] = LiveNode(float(at), rows, seconds=_seconds(over))
    return found


def read_kind(node_ids: Iterable[int], kind: str) -> dict[int, LiveNode] | None:
    """The same by what these nodes tell once for a page, which is everything, with what they used."""
    prefix = f"{kind}:"
    return _told(node_ids, lambda known: [name for name in known if name.startswith(prefix)])


def _told(node_ids: Iterable[int], chosen: Callable[[dict[str, Any]], Iterable[str]]) -> dict[int, LiveNode] | None:
    """Rows of these nodes, which tell all that they have once for a page; a row is decoded when it is chosen first."""
    nodes = sorted(node_ids)
    keys = [live_key(node_id) for node_id in nodes]
    answers = asked_once(("live numbers", *nodes), lambda: _hashes(keys, "live numbers"))
    if answers is None:
        return None
    found = {}
    for node_id, told in zip(nodes, answers, strict=True):
        if "at" in told:
            names, read = chosen(told), functools.cache(decode)  # most pools rest, and say so with the same text
            told |= {name: read(text) for name in names if isinstance(text := told[name], str)}
            in_use = json.loads(told.get("in_use", "{}"))
            rows = {_key(name): told[name] for name in names}
            found[node_id] = LiveNode(float(told["at"]), rows, in_use, seconds=_seconds(told.get("seconds", "")))
    return found


def read_totals(node_ids: Iterable[int]) -> dict[int, dict[Key, Counts]]:
    """Cumulative counters of every node that has some; empty when Redis is away."""
    nodes = list(node_ids)
    answers = _hashes([totals_key(node_id) for node_id in nodes], "counters for metrics")
    if answers is None:
        return {}
    return {
        node_id: {_key(name): decode(text) for name, text in answer.items() if name != NAME}
        for node_id, answer in zip(nodes, answers, strict=True)
        if answer
    }


def _hashes(keys: list[str], what: str) -> list[dict[str, Any]] | None:
    """Whole hashes in one trip; None when Redis is away, and the log says which numbers are missing."""
    try:
        pipe = client().pipeline(transaction=False)
        for key in keys:
            pipe.hgetall(key)
        answers: list[dict[str, Any]] = pipe.execute()
    except redis.RedisError as error:
        logger.warning("no %s: %s", what, error)
        return None
    return answers


def _seconds(text: str) -> float:
    return float(text) if text else WINDOW  # a collector of the version before does not say it


@functools.lru_cache(maxsize=10_000)
def _key(name: str) -> Key:
    kind, _, object_id = name.partition(":")
    return kind, object_id


def _asked(script: str, nodes: list[int], words: list[str]) -> list[list[str]] | None:
    """What the script answers about each node; None while Redis is left alone."""
    global _rests_until  # noqa: PLW0603 - see above
    if not nodes:
        return []
    if time.monotonic() < _rests_until:
        return None
    try:
        pipe = client().pipeline(transaction=False)
        ask = client().register_script(script)
        for first in range(0, len(nodes), NODES_AT_ONCE):
            ask(keys=[live_key(node_id) for node_id in nodes[first : first + NODES_AT_ONCE]], args=words, client=pipe)
        answers: list[list[list[str]]] = pipe.execute()
    except redis.RedisError as error:
        _rests_until = time.monotonic() + REST
        logger.warning("no live numbers: %s", error)
        return None
    return [each for answer in answers for each in answer]
