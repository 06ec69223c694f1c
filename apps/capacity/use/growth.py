"""How capacity grows with servers: the Universal Scalability Law through all sizes of a pool that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from apps.capacity.measure.fitting import Scalability, scalability
from apps.capacity.models import Run
from apps.capacity.use.staleness import servers_at_work
from apps.core.written.numbers import plain
from apps.definitions.models import Pool

LEAST_SIZES = 3
BEYOND = 2  # a law is believed up to so many times the largest size that was measured


@dataclass(frozen=True, slots=True)
class Size:
    """So many servers: what was measured and what the law says, requests/s; None where there is none."""

    servers: int
    measured: float | None
    by_law: float | None


@dataclass(frozen=True, slots=True)
class Growth:
    """The law with its sizes, or why there is none; it is not believed above `believed` servers."""

    message: str
    sizes: tuple[Size, ...] = ()
    law: Scalability | None = None
    believed: int = 0


def growth(measured: Sequence[tuple[int, float]]) -> Growth:
    """The law through (servers, requests/s); of several measurements of a size the last one counts."""
    last = dict(measured)
    law = scalability(list(last.items()))
    if law is None:
        return Growth(_missing(sorted(last)), tuple(Size(n, rate, None) for n, rate in sorted(last.items())))
    believed = _believed(law, max(last))
    shown = sorted({*last, believed})
    return Growth(_sentence(law, believed), tuple(Size(n, last.get(n), law.capacity(n)) for n in shown), law, believed)


def _missing(sizes: Sequence[int]) -> str:
    if not sizes:
        return "No capacity has been measured yet."
    words = ", ".join(str(size) for size in sizes)
    which = f"Only {words} server{'s were' if sizes != [1] else ' was'} measured"
    return f"{which}: a law of growth needs {LEAST_SIZES} different sizes, so what more servers take is taken as even."


def _believed(law: Scalability, largest: int) -> int:
    """Twice the largest size; no more than where another server would take capacity away."""
    peak = sqrt((1 - law.contention) / law.crosstalk) if law.crosstalk and law.contention < 1 else float("inf")
    return max(largest, int(min(BEYOND * largest, peak)))


def _sentence(law: Scalability, believed: int) -> str:
    share = law.capacity(believed) / (believed * law.one)
    return (
        f"One server takes {plain(law.one, 3)} requests/s; contention {100 * law.contention:.2f} %,"
        f" crosstalk {100 * law.crosstalk:.4f} %,"
        f" so {believed} take {plain(law.capacity(believed))}, {100 * share:.0f} % of {believed} times one."
        f" Above {believed} servers the fit is not reliable: measure there."
    )


def growth_of(pool: Pool) -> Growth:
    """The law of a pool, from its finished and confirmed searches of whole regions and of single servers."""
    runs = Run.objects.filter(pool=pool, state=Run.State.DONE, result__kind="search", result__confirmed=True)
    found = []
    for plan, document in runs.order_by("id").values_list("plan", "result"):
        result = document or {}
        size = 1 if (plan.get("target") or {}).get("server") else servers_at_work(result.get("build") or {})
        if size and result.get("capacity"):
            found.append((size, float(result["capacity"])))
    return growth(found)
