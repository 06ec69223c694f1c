"""How many servers a pool needs, from what was measured, and whether its servers share the work."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse, QueryDict

from apps.capacity.use.growth import Growth, growth_of
from apps.capacity.use.sizing import measurements_of, servers_of, size
from apps.core.written.numbers import plain
from apps.definitions.models import Pool
from apps.definitions.selectors import only, pools
from apps.web.kit.pages import PageRequest, page, show
from apps.web.sizing.balance import who_works
from apps.web.sizing.before_after import before_after

POOLS_SHOWN = 300
NUMBER = re.compile(r"([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]*)?")
MOST = {"rate": 1e9, "margin": 90.0, "cost": 1e9}


@page
def index(request: PageRequest) -> HttpResponse:
    """The answer for `?pool=`, `rate` (requests/s), `margin` (%) and `cost` of a server a month.

    With `n_minus_1=1` any one region may fail.
    """
    choices = pools(request.actor).prefetch_related(None)
    if not request.actor.is_operator:
        choices = choices.filter(account=request.actor.account)
    shown = list(choices[:POOLS_SHOWN])
    text = request.GET.get("pool", "")
    pool = only(choices, int(text)) if text.isascii() and text.isdecimal() and len(text) < 19 else None
    pool = pool or next(iter(shown), None)
    context: dict[str, Any] = {"pools": shown, "pool": pool, "asked": "rate" in request.GET}
    if pool is not None:
        context |= {
            **_answer(pool, request.GET),
            **who_works(servers_of(pool)),
            **_growth(growth_of(pool)),
        }
        cost = None if "cost" in context["field_errors"] else _number(context["typed"]["cost"])
        context |= before_after(request.actor, pool.pk, request.GET, cost)
    return show(request, "pages/sizing/sizing.html", context)


def _answer(pool: Pool, query: QueryDict) -> dict[str, Any]:
    """The sizing for what was typed, beside what was typed; an error for what is no number."""
    found = measurements_of(pool)
    known = sum((each.per_server or 0.0) * each.servers for each in found)
    typed = {name: query.get(name, "").strip()[:12] for name in ("rate", "margin", "cost")}
    typed["rate"] = typed["rate"] or (plain(known).replace(",", "") if known else "100")
    typed["margin"] = typed["margin"] or "10"
    n_minus_1 = query.get("n_minus_1") == "1" if "rate" in query else len(found) > 1
    numbers = {name: _number(text) for name, text in typed.items()}
    errors = {name: error for name, most in MOST.items() if (error := _error(name, typed[name], numbers[name], most))}
    context: dict[str, Any] = {"typed": typed, "n_minus_1": n_minus_1, "field_errors": errors, "measurements": found}
    if errors:
        return context
    answer = size(
        found,
        numbers["rate"] or 0.0,
        n_minus_1=n_minus_1,
        margin=(numbers["margin"] or 0.0) / 100,
        cost_per_server=numbers["cost"],
    )
    rows = [
        {
            "need": need,
            "per_server": plain(need.per_server),
            "takes": plain(need.takes),
            "more": f"{need.more:+d}" if need.more else "no change",
            "percent": min(100, round(100 * need.servers / need.needed)) if need.needed else 100,
        }
        for need in answer.needs
    ]
    takes = plain(answer.takes_now) if answer.takes_now is not None else ""
    return context | {"answer": answer, "rows": rows, "takes_now": takes, "cost": _cost(answer.cost)}


def _number(text: str) -> float | None:
    """The number that was typed: a comma stands between thousands, so that "1,5" is none."""
    return float(text.replace(",", "")) if NUMBER.fullmatch(text) else None


def _error(name: str, text: str, value: float | None, most: float) -> str:
    if not text:
        return ""
    if value is None or not 0 <= value <= most:
        return f"Enter a number from 0 to {most:,.0f}."
    return "Enter a rate above 0 requests/s." if name == "rate" and not value else ""


def _cost(value: float | None) -> str:
    return f"{value:,.0f}" if value is not None else ""


def _growth(found: Growth) -> dict[str, Any]:
    """The law of growth, each size as text beside the share of what that many single servers would take."""
    rows = [
        {
            "servers": size.servers,
            "measured": f"{plain(size.measured)}/s" if size.measured is not None else "",
            "by_law": f"{plain(size.by_law)}/s" if size.by_law is not None else "",
            "percent": round(100 * (size.by_law or 0.0) / (size.servers * found.law.one)) if found.law else None,
        }
        for size in found.sizes
    ]
    return {"growth": found, "growth_rows": rows}
