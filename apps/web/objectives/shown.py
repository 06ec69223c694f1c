"""How a pool or a route stands to its objective, as its page draws it; what nobody knows is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.definitions.models import Pool, Route
from apps.logs.objectives.standing import standing_of
from apps.observe.show.objectives import WHOLE, Aim, Day, Standing, days

# From so many percent of the budget on people should look.
LITTLE = 25
BURNS = {"1h": "last hour", "6h": "last 6 hours", "3d": "last 3 days"}
MISSED = {"pool": " without 5xx or refusal", "route": " without 5xx"}


def objective_of(row: Pool | Route) -> dict[str, Any] | None:
    """Its aims with what is left of each budget, and its days; None without an objective."""
    kind = "route" if isinstance(row, Route) else "pool"
    standing = standing_of(row)
    if standing is None:
        return None
    return {
        "aims": [_aim(aim, standing, MISSED[kind]) for aim in standing.aims],
        "known": _percent(standing.known, 1),
        "unknown": standing.unknown,
        "incomplete": standing.incomplete,
        "windows": BURNS.values(),
        "history": None if standing.unknown else _history(standing, days(kind, row.pk)),
    }


def _aim(aim: Aim, standing: Standing, failed: str) -> dict[str, Any]:
    whole = aim.shares[WHOLE]
    left, percent = whole.left, whole.percent
    shown = None if left is None else max(0, min(100, round(left)))
    within = f" within {standing.latency_ms:,} ms" if aim.word == "latency" else failed
    return {
        "word": aim.word.capitalize(),
        "target": f"{aim.target:g} % of requests{within}",
        "reached": "" if percent is None else _percent(percent, 3),
        "of": f"{whole.bad:,} of {whole.total:,} requests missed it",
        "left": shown,
        "left_text": "unknown" if left is None else (f"{left:.0f} %" if left >= 0 else f"overspent by {-left:,.0f} %"),
        "kind": "" if left is None or left > LITTLE else ("warn" if left > 0 else "bad"),
        "burns": [(words, _burn(aim.shares[name].burn)) for name, words in BURNS.items()],
    }


def _history(standing: Standing, found: Sequence[Day]) -> dict[str, Any] | None:
    """What was reached by day, once there are two; the worst in words."""
    if len(found) < 2:
        return None
    series = [("Availability", [_reached(each.total, each.failed) for each in found])]
    if standing.latency_ms is not None:
        series.append(("Latency", [_reached(each.timed, each.slow) for each in found]))
    known = [value for _, values in series for value in values if value is not None]
    return {
        "chart": {
            "x": [int(each.at.timestamp()) for each in found],
            "series": [{"label": label, "values": values, "unit": "%"} for label, values in series],
        },
        "lowest": f"{_percent(min(known), 3)} %" if known else "unknown",
    }


def _reached(total: int, bad: int) -> float | None:
    return 100 * (total - bad) / total if total else None


def _percent(value: float, digits: int) -> str:
    """Rounded down: nearly all is not all."""
    cut = int(value * 10**digits) / 10**digits
    return f"{cut:.{digits}f}".rstrip("0").rstrip(".")


def _burn(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.1f}"
