"""How a pool stands to its objective, as its page draws it; what nobody knows is a dash."""

from __future__ import annotations

from typing import Any

from apps.definitions.models import Pool
from apps.observe.show.objectives import WHOLE, Aim, Standing, standings

# From so many percent of the budget on people should look.
LITTLE = 25


def objective_of(pool: Pool) -> dict[str, Any] | None:
    """The pool's aims with what is left of each budget; None without an objective."""
    standing = standings([pool]).get(pool.pk)
    if standing is None:
        return None
    return {"aims": [_aim(aim, standing) for aim in standing.aims], "known": _percent(standing.known, 1)}


def _aim(aim: Aim, standing: Standing) -> dict[str, Any]:
    whole = aim.shares[WHOLE]
    left, percent = whole.left, whole.percent
    shown = None if left is None else max(0, min(100, round(left)))
    within = f" within {standing.latency_ms:,} ms" if aim.word == "latency" else " without 5xx or refusal"
    return {
        "word": aim.word.capitalize(),
        "target": f"{aim.target:g} % of requests{within}",
        "reached": "" if percent is None else _percent(percent, 3),
        "of": f"{whole.bad:,} of {whole.total:,} requests missed it",
        "left": shown,
        "left_text": "unknown" if left is None else (f"{left:.0f} %" if left >= 0 else f"overspent by {-left:,.0f} %"),
        "kind": "" if left is None or left > LITTLE else ("warn" if left > 0 else "bad"),
        "burns": [(name, _burn(aim.shares[name].burn)) for name in ("1h", "6h")],
    }


def _percent(value: float, digits: int) -> str:
    """Rounded down: nearly all is not all."""
    cut = int(value * 10**digits) / 10**digits
    return f"{cut:.{digits}f}".rstrip("0").rstrip(".")


def _burn(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.1f}"
