"""Two times of a pool side by side, as a change at the first one left it by the second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.capacity.use.balance import Balance
from apps.capacity.use.before_after import WHOLE, Change, Period, before_and_after
from apps.core.clock import now
from apps.web.kit.figures import amount, share
from apps.web.sizing.balance import MINUTES

OLDEST = timedelta(days=2)
SPAN = timedelta(minutes=MINUTES)
BAD_TIME = "Enter a time such as 2027-01-31T14:30, in UTC."


def before_after(actor: Actor, pool_id: int, query: QueryDict, cost: float | None) -> dict[str, Any]:
    """The minutes before `?changed=` beside those before `?then=` (now), UTC; an error beside what is no such time."""
    typed = {name: query.get(name, "").strip()[:25] for name in ("changed", "then")}
    if not typed["changed"]:
        errors = {"changed": "Enter the time of the change."} if typed["then"] else {}
        return {"times": typed, "time_errors": errors}
    instant = now()
    changed, then = _time(typed["changed"]), _time(typed["then"]) if typed["then"] else instant
    errors = {}
    if changed is None or not instant - OLDEST < changed <= instant - SPAN:
        errors["changed"] = (
            f"Choose a time in the last two days, at least {MINUTES} minutes ago." if changed else BAD_TIME
        )
    elif then is None or not changed + SPAN <= then <= instant:
        errors["then"] = f"Choose a time between {MINUTES} minutes after the change and now." if then else BAD_TIME
    if errors or changed is None or then is None:
        return {"times": typed, "time_errors": errors}
    found = before_and_after(actor, pool_id, before=changed, after=then, minutes=MINUTES, cost_per_server=cost)
    spans = [{"since": end - SPAN, "until": end} for end in (changed, then)]
    return {
        "times": typed,
        "changes": [_row(change) for change in found],
        "spans": spans,
        "with_cost": cost is not None,
    }


def _time(text: str) -> datetime | None:
    """What a browser's field for a time sends, or any ISO 8601 time; without a zone it is UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _row(change: Change) -> dict[str, Any]:
    """A row of the table: each number before and after, and the sentence about it."""
    pair = change.before, change.after
    texts = {
        "p95": [f"{amount(each.p95_ms)} ms" if each.p95_ms is not None else "" for each in pair],
        "servers": [amount(each.servers) for each in pair],
        "cost": [amount(None if each.cost is None else round(each.cost)) for each in pair],
        "spread": [_spread(each) for each in pair],
    }
    cells = {name: _arrow(*values) for name, values in texts.items()}
    counted = {
        "region": "" if change.where == WHOLE else change.where,
        "requests": [amount(each.requests_rps) for each in pair],
        "errors": [share(each.error_rate) for each in pair],
    }
    return {"where": change.where, "message": change.message, **counted, **cells}


def _spread(each: Period) -> str:
    found: Balance | None = each.balance
    if found is None or found.status == "unknown":
        return ""
    return f"{found.spread:.1f}" if found.spread else "no end"


def _arrow(before: str, after: str) -> str:
    """Empty where neither is known."""
    return f"{before or '–'} → {after or '–'}" if before or after else ""
