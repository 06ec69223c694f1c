"""Which part of a pool's traffic each region gets, from what was counted; pure.

An Application Load Balancer knows no limits. So its weighted target groups are moved: the own region takes what it can,
the rest goes to the others in their order, each as far as it has room; with no room anywhere, to all by capacity.

1. Demand is the mean of the last whole minutes over all regions: an ALB counts what arrives, whoever serves it.
2. Fill the regions in their order up to their limits, less what they serve for others already.
3. Stay where we are while the wish is near: moves below two percent help nobody, and going home waits until there is a
   tenth of room, so that weights do not swing.

CloudWatch counts whole minutes and has them a minute later: this reacts within one to three minutes, not on the next
request as a fleet does. Pages say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WHOLE = 1000
SMALLEST_MOVE = 20
HOMEWARD_ROOM = 0.9


@dataclass(frozen=True, slots=True)
class RegionBackend:
    """One backend of a pool: the own region's first, then in the order in which overflow tries them.

    `limit` is in requests/s after the capacity scaler, None for none; a drained region has a limit of 0. `busy` are
    requests/s that it serves besides this stack. `weight` is its present one (0–1000).
    """

    backend_id: int
    region: str
    limit: float | None
    busy: float = 0.0
    weight: int = 0

    @property
    def room(self) -> float:
        """What it can take from this stack, requests/s."""
        return float("inf") if self.limit is None else max(self.limit - self.busy, 0.0)


@dataclass(frozen=True, slots=True)
class Move:
    """The weights as they should be, by backend, and why."""

    weights: dict[int, int]
    reason: str


def present_weights(backends: Sequence[RegionBackend]) -> dict[int, int]:
    """The weights that are in force: all on the own region as long as nobody moved any."""
    if any(backend.weight for backend in backends):
        return {backend.backend_id: backend.weight for backend in backends}
    return {backend.backend_id: WHOLE if index == 0 else 0 for index, backend in enumerate(backends)}


def next_move(backends: Sequence[RegionBackend], demand: float) -> Move | None:
    """The weights for this demand (requests/s), None when they shall stay. `backends` must not be empty."""
    now = present_weights(backends)
    wish = _weights(backends, _fill(backends, demand))
    if _distance(now, wish) < SMALLEST_MOVE:
        return None
    if _is_homeward(backends, now, wish):
        calm = _weights(backends, _fill(backends, demand / HOMEWARD_ROOM))
        if not _is_homeward(backends, now, calm) or _distance(now, calm) < SMALLEST_MOVE:
            return None
        wish = calm
    return Move(wish, _reason(backends, demand, wish))


def _fill(backends: Sequence[RegionBackend], demand: float) -> list[float]:
    """Requests/s for each backend."""
    left, found = max(demand, 0.0), []
    for backend in backends:
        taken = min(left, backend.room)
        found.append(taken)
        left -= taken
    if left <= 0:
        return found
    open_to = [backend.limit or 0.0 for backend in backends]
    if not any(open_to):
        return [demand if index == 0 else 0.0 for index in range(len(backends))]
    return [demand * each / sum(open_to) for each in open_to]


def _weights(backends: Sequence[RegionBackend], shares: Sequence[float]) -> dict[int, int]:
    """Shares as whole weights that sum up to 1000: the largest remainders get what rounding left."""
    total = sum(shares)
    if total <= 0:
        takes = next((index for index, backend in enumerate(backends) if backend.room > 0), 0)
        return {backend.backend_id: WHOLE if index == takes else 0 for index, backend in enumerate(backends)}
    exact = [WHOLE * share / total for share in shares]
    found = [int(each) for each in exact]
    for index in sorted(range(len(exact)), key=lambda at: found[at] - exact[at])[: WHOLE - sum(found)]:
        found[index] += 1
    return {backend.backend_id: weight for backend, weight in zip(backends, found, strict=True)}


def _distance(now: dict[int, int], wish: dict[int, int]) -> int:
    return max(abs(now.get(key, 0) - weight) for key, weight in wish.items())


def _is_homeward(backends: Sequence[RegionBackend], now: dict[int, int], wish: dict[int, int]) -> bool:
    own = backends[0].backend_id
    return wish[own] > now[own]


def _reason(backends: Sequence[RegionBackend], demand: float, wish: dict[int, int]) -> str:
    own = backends[0]
    if wish[own.backend_id] == WHOLE:
        return f"{demand:.0f} requests/s fit in {own.region}."
    limit = "no traffic" if own.limit == 0 else f"{own.limit or 0:.0f} requests/s"
    elsewhere = ", ".join(
        f"{wish[backend.backend_id] / 10:.1f} % to {backend.region}"
        for backend in backends[1:]
        if wish[backend.backend_id]
    )
    return f"{demand:.0f} requests/s arrive, {own.region} takes {limit}: {elsewhere or 'it serves them all'}."
