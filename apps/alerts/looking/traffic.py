"""Looks at the numbers of the last minute: errors, latency and refusals of each pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.db.models import F, Sum

from apps.alerts.looking.contract import BLIND, Look, Seen
from apps.definitions.models import Pool
from apps.observe.collect import lease
from apps.observe.collect.buckets import SHORT
from apps.observe.collect.percentiles import from_json, merge, percentile
from apps.observe.evaluate.conditions import ERRORS_MINIMUM
from apps.observe.models import Sample
from apps.observe.show.flows import FlowKey

# The last minute of whole buckets, which are stored a tick or two after they end.
WINDOW = timedelta(seconds=75)
WATCHES = ("pool_errors", "pool_slow", "pool_refusing")


def look_at_traffic(instant: datetime) -> dict[str, Look]:
    """Every watch of this file at once, in four queries: each pool with traffic, and its value."""
    if not lease.watched():
        return dict.fromkeys(WATCHES, BLIND)
    recent = Sample.objects.filter(resolution=SHORT, at__gte=instant - WINDOW, seconds__gt=0)
    rows = recent.filter(kind="backend", requests__gt=0).values_list(
        "object_id", "status_2xx", "status_3xx", "status_4xx", "status_5xx", "latency_buckets", "requests"
    )
    responses: dict[int, int] = defaultdict(int)
    failed: dict[int, int] = defaultdict(int)
    served: dict[int, int] = defaultdict(int)
    latency: dict[int, list[Mapping[int, int]]] = defaultdict(list)
    for name, *classes, buckets, requests in rows:
        pool = _number(name)
        responses[pool] += sum(classes)
        failed[pool] += classes[-1]
        served[pool] += requests
        if buckets:
            latency[pool].append(from_json(buckets))
    refused = _refused(recent.filter(kind="flow").values_list("object_id").annotate(count=Sum(F("requests"))))
    slow = {pool: percentile(merge(each), 0.95) for pool, each in latency.items()}
    busy = {pool for pool, count in responses.items() if count >= ERRORS_MINIMUM}
    many = {pool for pool, count in refused.items() if count + served[pool] >= ERRORS_MINIMUM}
    named = _Named(instant, busy | many | set(slow))
    errors = {pool: 100 * failed[pool] / responses[pool] for pool in busy if failed[pool]}
    shares = {pool: 100 * refused[pool] / (refused[pool] + served[pool]) for pool in many}
    return {
        "pool_errors": named.look(errors, "answers with errors", "{:.0f} % of the responses of the last minute: 5xx."),
        "pool_slow": named.look(
            {pool: ms for pool, ms in slow.items() if ms is not None and pool in busy},
            "is slow",
            "The 95th percentile of the last minute is {:,.0f} ms.",
        ),
        "pool_refusing": named.look(
            shares, "refuses requests", "{:.0f} % of the requests of the last minute found no room in any region."
        ),
    }


def _number(name: str) -> int:
    return int(name.removeprefix("pool-"))


def _refused(rows: Iterable[tuple[str, int]]) -> dict[int, int]:
    found: dict[int, int] = defaultdict(int)
    for name, count in rows:
        key = FlowKey.read(name)
        if key.verb == "refuse":
            found[_number(key.pool)] += count
    return found


class _Named:
    """Pools by primary key, to say what is wrong with them."""

    def __init__(self, instant: datetime, pools: Iterable[int]) -> None:
        self.instant = instant
        rows = Pool.objects.filter(pk__in=list(pools)).values_list("pk", "account_id", "account__name", "name")
        self.known = {pk: (account_id, account, name) for pk, account_id, account, name in rows}

    def look(self, values: Mapping[int, float], words: str, sentence: str) -> Look:
        """Each of the pools with its value."""
        return Look(tuple(self._seen(pk, value, words, sentence) for pk, value in values.items() if pk in self.known))

    def _seen(self, pk: int, value: float, words: str, sentence: str) -> Seen:
        account_id, account, name = self.known[pk]
        detail, page = sentence.format(value), f"/pools/{pk}"
        title = f"Pool {{}} {words}"
        return Seen(
            "pool", pk, account_id, account, name, title, detail, self.instant, page, (f"pool:{pk}",), value=value
        )
