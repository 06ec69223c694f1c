"""The gate between two waves: whether pools do as well on the nodes that have a change as without it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# Of fewer responses nothing follows.
LEAST_FAILED = 10
LEAST_COMPARED = 10
LEAST_TIMED = 100
# Of responses that take a few milliseconds, three times as long says nothing.
LEAST_SLOWER_MS = 50.0


@dataclass(frozen=True, slots=True)
class Counted:
    """What a pool did on some nodes in some time; `failed` are 5xx, `mean_ms` is how long its servers took.

    `down` says whether none of its servers was up on any of the nodes at the end; None where nobody knows.
    """

    requests: int = 0
    failed: int = 0
    mean_ms: float | None = None
    down: bool | None = None

    @property
    def error_rate(self) -> float | None:
        """The share (0–1) of 5xx, None without responses."""
        return self.failed / self.requests if self.requests else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One pool on the updated nodes, there before the change, and meanwhile on nodes without it."""

    updated: Counted
    before: Counted = Counted()
    others: Counted = Counted()


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a change may do to a pool: more 5xx (percentage points), and responses that take so many times as long."""

    max_error_increase: float
    max_slowdown: float


def regressions(pools: Mapping[str, Comparison], bounds: Bounds) -> dict[str, str]:
    """What is worse with the change, as a sentence about each pool (model id) that suffers; empty when none does."""
    found = {pool: " ".join(_regressions(compared, bounds)) for pool, compared in pools.items()}
    return {pool: said for pool, said in found.items() if said}


def _regressions(pool: Comparison, bounds: Bounds) -> Iterator[str]:
    if more := _more_errors(pool, bounds):
        yield more
    if slower := _slower(pool, bounds):
        yield slower
    without = (pool.before.down, pool.others.down)
    if pool.updated.down and False in without and not pool.others.down:
        yield "None of its servers is up any more."


def _more_errors(pool: Comparison, bounds: Bounds) -> str:
    """A pool that nobody asked anything before is compared with nothing: that it fails may be no news."""
    sides = {"before": pool.before, "on the other nodes": pool.others}
    known = {words: each.error_rate or 0.0 for words, each in sides.items() if each.requests >= LEAST_COMPARED}
    rate = pool.updated.error_rate
    if rate is None or not known or pool.updated.failed < LEAST_FAILED:
        return ""
    if 100 * (rate - max(known.values())) <= bounds.max_error_increase:
        return ""
    without = ", ".join(f"{100 * usual:.1f} % {words}" for words, usual in known.items())
    return f"{100 * rate:.1f} % of its {pool.updated.requests:,} responses are 5xx ({without})."


def _slower(pool: Comparison, bounds: Bounds) -> str:
    """Only what was measured on both sides is compared."""
    took = pool.updated.mean_ms
    known = [each.mean_ms for each in (pool.before, pool.others) if each.mean_ms and each.requests >= LEAST_TIMED]
    if took is None or not known or pool.updated.requests < LEAST_TIMED:
        return ""
    usual = max(known)
    if took <= max(bounds.max_slowdown * usual, usual + LEAST_SLOWER_MS):
        return ""
    return f"Its servers take {took:,.0f} ms to respond, {usual:,.0f} ms without the change."
