"""The hands: reads one node through its driver; blocks, so it runs in a thread."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from apps.core.clock import now
from apps.drivers.proxy.contract import (
    CounterReading,
    CounterRow,
    Credentials,
    NodeState,
    NodeTarget,
    Observation,
    ProxyError,
    Revoked,
    Seen,
)
from apps.drivers.proxy.registry import open_driver
from apps.fleet.certificates.trust import Trust, trust
from apps.fleet.models import Node
from apps.observe.collect.deltas import counted
from apps.observe.collect.percentiles import BOUNDS

OBJECT_IDS = {
    "frontend": re.compile(r"lst-[0-9]{1,18}"),
    "backend": re.compile(r"pool-[0-9]{1,18}"),
    "server": re.compile(r"srv-[0-9]{1,18}"),
    "rejected": re.compile(r"lst-[0-9]{1,18}"),
    "route": re.compile(r"route-[0-9]{1,18}"),
    "flow": re.compile(r"pool-[0-9]{1,18}/(?:to|queue|refuse|from|bounce)/rgn-[0-9]{1,18}/(?:[a-z]{1,12}|-)"),
}
NODE, REGION = re.compile(r"node-[0-9]{1,18}"), re.compile(r"rgn-[0-9]{1,18}")
IN_USE = frozenset({"cpu", "connections"})
ADMITTED = re.compile(r"pool-[0-9]{1,18}/node-[0-9]{1,18}(?:/guest)?")
A_MINUTE = 60_000
NEVER = re.compile(r"(?!)")
NO_TRUST = Trust()
SMALLEST_MAXIMUM = 2**31 - 1
LARGEST_COUNT = 2**62
WHOLE_NUMBERS = {int}
MOST_FEATURES, LONGEST_FEATURE = 200, 40
LONGEST_TOKEN = 80


@dataclass(frozen=True, slots=True)
class Reading:
    """One node as it was read between `asked_at` and `at`: a state with counters, or the reason why not.

    `counters` may be missing while the agent answers and no HAProxy runs. `clock_ahead_s` is by how much at least the
    node's clock is ahead of ours, whatever the way took; None where its agent does not tell the time. `revoked` says
    that the node showed a certificate that counts no more.
    """

    node_id: int
    asked_at: datetime
    at: datetime
    state: NodeState | None = None
    counters: CounterReading | None = None
    error: str = ""
    clock_ahead_s: float | None = None
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Address:
    """Where a node is reached, what stands for us and for it there, and what it need not tell again."""

    node_id: int
    name: str
    url: str
    trust: Trust = NO_TRUST
    seen: Seen | None = None


def addresses_of(nodes: Iterable[Node]) -> list[Address]:
    """Where each of them is reached now. Two queries and that of the nodes."""
    known = trust()
    return [Address(node.pk, node.name, node.url, known) for node in nodes]


def target_of(address: Address) -> NodeTarget:
    """The driver's way of naming a node, with what this control plane shows it."""
    known, credentials = address.trust, None
    if known.client is not None:
        credentials = Credentials(known.believed, known.client.certificate, known.client.key)
    return NodeTarget(
        name=address.name,
        url=address.url,
        ca_file=settings.AGENT_CA_FILE,
        certificate_file=settings.AGENT_CERTIFICATE_FILE,
        key_file=settings.AGENT_KEY_FILE,
        credentials=credentials,
        revoked=known.revoked,
    )


def read_node(address: Address) -> Reading:
    """State and counters; never raises: what went wrong is in `error`."""
    asked_at = now()
    try:
        found = open_driver(target_of(address)).observe(address.seen)
        check_clock(found.clock)
        at = now()
        ahead = _clock_ahead(found.clock, asked_at.timestamp(), at.timestamp())
        if address.seen is None or found.state is not address.seen.state:
            check_state(found.state)
    except Revoked as error:
        return Reading(address.node_id, asked_at, now(), error=error.message, revoked=True)
    except Exception as error:  # noqa: BLE001 - one strange node must not end the collector
        return Reading(address.node_id, asked_at, now(), error=_sentence(error))
    counters, trouble = _sound_counters(found)
    return Reading(address.node_id, asked_at, at, found.state, counters, trouble, ahead)


def _clock_ahead(clock: float | None, asked: float, answered: float) -> float | None:
    """Against the middle of question and answer, less what the way may have taken."""
    if clock is None:
        return None
    ahead, doubt = clock - (asked + answered) / 2, (answered - asked) / 2
    return math.copysign(max(0.0, abs(ahead) - doubt), ahead)


def _sound_counters(found: Observation) -> tuple[CounterReading | None, str]:
    try:
        return sound(found.counters) if found.counters is not None else None, found.trouble
    except Exception as error:  # noqa: BLE001 - as above
        return None, _sentence(error)


def check_state(state: NodeState) -> None:
    """Raise ValueError for a state that no table could hold: one broken agent must not keep the others from theirs."""
    small, large = (state.workers, state.reloads), (state.generation,)
    if not all(_fits(value, SMALLEST_MAXIMUM) for value in small) or not all(_fits(value) for value in large):
        raise ValueError("numbers out of range")
    check_clock(state.clock)
    texts = (state.digest, state.on_disk, state.haproxy_version, state.agent_version, state.boot_id, state.last_error)
    more = (state.unavailable, state.ticket_secrets, state.tls_library, *state.drift, *state.features)
    if not all(isinstance(text, str) and "\0" not in text for text in (*texts, *more)):
        raise ValueError("texts that are none")
    if len(state.features) > MOST_FEATURES or any(len(each) > LONGEST_FEATURE for each in state.features):
        raise ValueError("more features than HAProxy has")
    if len(state.protocols) != 2 or not all(_fits(each, SMALLEST_MAXIMUM) for each in state.protocols):
        raise ValueError("no versions of the protocol")


def check_clock(clock: float | None) -> None:
    """Raise ValueError for a time that is none."""
    if clock is not None and not (isinstance(clock, int | float) and math.isfinite(clock)):
        raise ValueError("a time that is none")


def sound(reading: CounterReading) -> CounterReading:
    """The reading without rows that are not ours or have impossible values."""
    rows = tuple(row for row in reading.rows if _sound_row(row))
    latency = {
        pool: {bound: count for bound, count in buckets.items() if bound in BOUNDS and _fits(count)}
        for pool, buckets in reading.latency_buckets.items()
    }
    return CounterReading(
        epoch=str(reading.epoch),
        read_at=float(reading.read_at),
        rows=rows,
        latency_buckets=latency,
        admitted={key: count for key, count in reading.admitted.items() if ADMITTED.fullmatch(key) and _fits(count)},
        peers={node: up is True for node, up in reading.peers.items() if NODE.fullmatch(node)},
        distances_ms={
            region: ms
            for region, ms in reading.distances_ms.items()
            if REGION.fullmatch(region) and _fits(ms, A_MINUTE)
        },
        in_use={
            name: float(share)
            for name, share in reading.in_use.items()
            if name in IN_USE and isinstance(share, int | float) and 0 <= share <= 1
        },
        token=str(reading.token)[:LONGEST_TOKEN],
        base=reading.base,
        gone=tuple([(kind, name) for kind, name in reading.gone if isinstance(kind, str) and isinstance(name, str)]),
        resumed=reading.resumed,
    )


def _sound_row(row: CounterRow) -> bool:
    counts, gauges = counted(row), (row.connections_now, row.queue_now, row.latency_ms)
    return (
        OBJECT_IDS.get(row.kind, NEVER).fullmatch(row.object_id) is not None
        and {*map(type, counts), *map(type, gauges)} == WHOLE_NUMBERS
        and min(counts) >= 0 <= min(gauges)
        and max(counts) <= LARGEST_COUNT
        and max(gauges) <= SMALLEST_MAXIMUM
        and "\0" not in f"{row.parent_id}{row.status}{row.check}"
        and len(row.parent_id) <= 30
    )


def _fits(value: object, maximum: int = LARGEST_COUNT) -> bool:
    return type(value) is int and 0 <= value <= maximum


def _sentence(error: Exception) -> str:
    return error.message if isinstance(error, ProxyError) else f"The answer cannot be used: {error}."
