"""Overflow: who wants traffic, who serves it and why, how it was, and what would be if."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict

from apps.core.clock import now
from apps.definitions import selectors as definitions
from apps.definitions.models import Pool
from apps.overflow import selectors
from apps.overflow.flows import Flow, Point, WhatIf
from apps.overflow.replay import replay
from apps.web.kit.figures import amount
from apps.web.kit.pages import PageRequest, page, shared_parts, show
from apps.web.overflow.limit_charts import limit_charts, stack
from apps.web.overflow.parts import TightPool, compare, shown, tight_pools
from apps.web.overflow.what_if_form import WhatIfForm
from apps.web.pools.limits import limit_link
from apps.web.pools.tables import policy_of
from apps.web.timeline.events import events_of

POOLS_SHOWN = 300
HOUR, DAY = "hour", "day"
# Minutes that a window spans, seconds of one step in it, its title.
WINDOWS = {HOUR: (60, 10, "the last hour"), DAY: (24 * 60, 300, "the last day")}
OLDEST = timedelta(days=2)
BUCKET_S = 10
REGIONS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Window:
    """What the slider spans, in Unix seconds; `after` is None where the next step would be the future."""

    key: str
    title: str
    minutes: int
    first: int
    last: int
    step: int
    chosen: int
    before: int
    after: int | None
    words: str


@page
@shared_parts("samples", "definitions")
def index(request: PageRequest) -> HttpResponse:
    """The flow of all pools or of one, now or at `?at=` (Unix seconds), and the answer to a what-if."""
    pool = _pool(request)
    at = _instant(request.GET.get("at", ""))
    partial = request.GET.get("partial", "")
    response = show(request, "pages/overflow/overflow.html", _context_of(request, pool, at))
    if partial in ("past", "seen"):
        # What a slider answers: the address bar says what is seen, so that it can be sent to somebody.
        response["HX-Replace-Url"] = f"{request.path}?{_clean(request.GET)}"
    return response


def _context_of(request: PageRequest, pool: Pool | None, at: datetime | None) -> dict[str, Any]:
    partial = request.GET.get("partial", "")
    context: dict[str, Any] = {"pool": pool, "at": at, "window": _window(request.GET.get("window", ""), at)}
    flow, plan = _now(request, pool, at)
    form = WhatIfForm(request.GET, flow.regions, of_one_pool=pool is not None) if flow else None
    if partial in ("", "seen", "past", "now"):
        seen = flow if flow and not at else selectors.flow_of(request.actor, pool, at)
        context |= {"shown": shown(seen, "overflow", past=at is not None), "kept": _kept(request.GET), **_bucket(at)}
    if partial in ("", "seen") and flow and form:
        context |= {"form": form, "presets": _presets(pool, flow), **_answer(request, pool, form.question())}
    if partial in ("", "seen", "history"):
        question = form.question() if form else None
        context |= _history(request, pool, context["window"], flow, question)
    if flow and plan:
        context["comparison"] = compare(plan, flow)
    if flow and not partial:
        context |= {"pools": _pools(request, pool), "tight": _tight(request, flow)}
        context["policy"] = policy_of(pool, request.actor) if pool else None
    return context


def _bucket(at: datetime | None) -> dict[str, datetime]:
    """Since when until when the numbers of a time in the past were counted; nothing for those of now."""
    if at is None:
        return {}
    since = datetime.fromtimestamp(int(at.timestamp()) // BUCKET_S * BUCKET_S, UTC)
    return {"since": since, "until": since + timedelta(seconds=BUCKET_S)}


def _now(request: PageRequest, pool: Pool | None, at: datetime | None) -> tuple[Flow | None, Flow | None]:
    """The flow of now and the plan for it, as far as the page or its part shows them."""
    partial = request.GET.get("partial", "")
    if partial in ("", "predicted"):
        return selectors.flow_and_plan(request.actor, pool)
    needed = partial == "seen" or (partial == "history" and pool) or (at is None and partial in ("past", "now"))
    return (selectors.flow_of(request.actor, pool) if needed else None), None


def _pool(request: PageRequest) -> Pool | None:
    text = request.GET.get("pool", "")
    if not text:
        return None
    return definitions.only(definitions.pools(request.actor), int(text) if text.isdecimal() and len(text) < 19 else 0)


def _pools(request: PageRequest, chosen: Pool | None) -> list[tuple[int, str]]:
    """The pools to choose from, by primary key with their names; the chosen one is always among them."""
    rows = definitions.pools(request.actor).prefetch_related(None).values_list("pk", "account__name", "name")
    found = [(pk, f"{owner}/{name}") for pk, owner, name in rows[:POOLS_SHOWN]]
    if chosen is None or any(pk == chosen.pk for pk, _ in found):
        return found
    return [(chosen.pk, f"{chosen.account.name}/{chosen.name}"), *found]


def _instant(text: str) -> datetime | None:
    """The time that `?at=` names; None for now, for what is no time and for what is too old to be known."""
    if not text.isdecimal() or len(text) > 12:
        return None
    ago_s = now().timestamp() - int(text)
    return datetime.fromtimestamp(int(text), UTC) if 10 <= ago_s <= OLDEST.total_seconds() else None


def _window(key: str, at: datetime | None) -> Window:
    minutes, step, title = WINDOWS.get(key, WINDOWS[HOUR])
    last = int(now().timestamp()) // step * step
    first = last - minutes * 60
    chosen = min(last, max(first, int(at.timestamp()) // step * step)) if at else last
    return Window(
        key=key if key in WINDOWS else HOUR,
        title=title,
        minutes=minutes,
        first=first,
        last=last,
        step=step,
        chosen=chosen,
        before=max(first, chosen - step),
        after=chosen + step if at and chosen + step < last else None,
        words=f"{at:%H:%M:%S} UTC" if at else "now",
    )


def _kept(query: QueryDict) -> list[tuple[str, str]]:
    """What the slider's form sends along."""
    return [(name, str(value)) for name in ("pool", "window") if (value := query.get(name))]


def _clean(query: QueryDict) -> str:
    kept = query.copy()
    kept.pop("partial", None)
    return kept.urlencode()


def _history(
    request: PageRequest, pool: Pool | None, window: Window, flow: Flow | None, question: WhatIf | None
) -> dict[str, Any]:
    """One chart of all pools, or of one pool a chart for each region beside its limit."""
    if pool and flow:
        marks = [event.mark() for event in events_of(request.actor, pool, datetime.fromtimestamp(window.first, UTC))]
        is_own = request.actor.owns(pool)
        links = _limit_links(pool, flow, question.limits if question and is_own else {})
        drawn = limit_charts(replay(request.actor, pool, question, window.minutes), flow, question, marks, links)
        return {"charts": drawn[:REGIONS_SHOWN], "charts_left": len(drawn[REGIONS_SHOWN:]), "simulated": bool(question)}
    points = selectors.history(request.actor, None, window.minutes)
    over = [point.overflow_out_rps for point in points if point.overflow_out_rps is not None]
    local = [_local(point) for point in points]
    out, refused = [point.overflow_out_rps for point in points], [point.rejected_rps for point in points]
    chart = {"x": [point.at for point in points], "series": stack(local, out, refused)}
    peak = amount(max(over, default=None))
    label = f"Local, overflow and rejected requests per second in {window.title}, overflow at most {peak}"
    return {"chart": chart if over else None, "peak": peak, "chart_label": label}


def _limit_links(pool: Pool, flow: Flow, asked: Mapping[str, float]) -> dict[str, str]:
    """Region (id) → where the limit that is asked for can be set."""
    now_rps = {use.region_id: use.capacity_rps for use in flow.regions}
    rows = pool.backends.select_related("region") if asked else ()
    backends = {f"rgn-{each.region_id}": each for each in rows}
    return {
        region: limit_link(backends[region], now_rps.get(region), rps)
        for region, rps in asked.items()
        if region in backends
    }


def _local(point: Point) -> float | None:
    """What was served where it came from; None where a part of the sum is unknown."""
    if point.demand_rps is None or point.overflow_out_rps is None:
        return None
    return max(0.0, point.demand_rps - point.overflow_out_rps - (point.rejected_rps or 0.0))


def _answer(request: PageRequest, pool: Pool | None, question: WhatIf | None) -> dict[str, Any]:
    """Once something is asked, both flows and what differs."""
    if question is None:
        return {}
    current, predicted, differences = selectors.what_if(request.actor, pool, question)
    return {
        "current": shown(current, "if-current"),
        "predicted": shown(predicted, "if-predicted", counted=False),
        "differences": differences,
    }


def _tight(request: PageRequest, flow: Flow) -> list[TightPool]:
    return tight_pools(flow, definitions.pools(request.actor).prefetch_related(None).select_related("account"))


def _presets(pool: Pool | None, flow: Flow) -> list[tuple[str, str]]:
    """Questions that people ask first, as links."""
    same = {"pool": pool.pk} if pool else {}
    found = [("+50 % traffic", {"factor": "1.5"}), ("twice the traffic", {"factor": "2"})]
    found += [(f"{use.name} fails", {"failed_regions": use.region_id}) for use in flow.regions[:4]]
    return [(words, "?" + urlencode({**same, **query})) for words, query in found]
