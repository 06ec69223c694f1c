"""How a pool or a route stands to its objective, as its page draws it; what nobody knows is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.core.clock import now
from apps.definitions.models import Pool, Route
from apps.logs.objectives.standing import standing_of
from apps.observe.collect.slots import WINDOW, day_of
from apps.observe.show.objectives import WHOLE, Aim, Day, Share, Standing, days
from apps.web.kit.figures import cut

# From so many percent of the budget on people should look.
LITTLE = 25
BURNS = {"1h": "last hour", "6h": "last 6 hours", "3d": "last 3 days"}
# Capacity runs are not counted.
NO_RUN = 'test_run:""'
MISSED = {"pool": " without 5xx or refusal", "route": " without 5xx"}


def objective_of(row: Pool | Route) -> dict[str, Any] | None:
    """Its aims with what is left of each budget, and its days; None without an objective."""
    kind = "route" if isinstance(row, Route) else "pool"
    standing = standing_of(row)
    if standing is None:
        return None
    return {
        "kind": kind,
        "row": row,
        "since": day_of(now()) - WINDOW,
        "aims": [_aim(aim, standing, MISSED[kind]) for aim in standing.aims],
        "known": cut(standing.known, 1),
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
        "reached": "" if percent is None else cut(percent, 3),
        "of": f"{whole.bad:,} of {whole.total:,} requests missed it",
        "filter": f"{'status>=500' if aim.word == 'availability' else f'response>{standing.latency_ms}'} {NO_RUN}",
        "left": shown,
        "left_text": "unknown" if left is None else (f"{left:.0f} %" if left >= 0 else f"overspent by {-left:,.0f} %"),
        "kind": "" if left is None or left > LITTLE else ("warn" if left > 0 else "bad"),
        "burns": [(words, _burn(aim.shares[name].burn)) for name, words in BURNS.items()],
    }


def _history(standing: Standing, found: Sequence[Day]) -> dict[str, Any] | None:
    """How fast the budget was used by day, once there are two; the worst in words."""
    if len(found) < 2:
        return None
    burns = [[_share(aim, each).burn for each in found] for aim in standing.aims]
    highest = max((rate for rates in burns for rate in rates if rate is not None), default=None)
    series = [
        {"label": aim.word.capitalize(), "values": rates, "unit": "×"}
        for aim, rates in zip(standing.aims, burns, strict=True)
    ]
    return {
        "chart": {"x": [int(each.at.timestamp()) for each in found], "series": series},
        "highest": f"{_burn(highest)} ×" if highest is not None else "unknown",
    }


def _share(aim: Aim, day: Day) -> Share:
    counts = (day.total, day.failed) if aim.word == "availability" else (day.timed, day.slow)
    return Share(*counts, aim.target)


def _burn(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.1f}"
