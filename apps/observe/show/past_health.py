"""How the servers of a pool were at a moment that is over, as the nodes of their regions saw them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.accounts.actors import Actor
from apps.definitions.models import Pool, Server
from apps.definitions.sharing import seen_pools
from apps.observe.collect.buckets import LONG, SHORT
from apps.observe.evaluate.conditions import server_word
from apps.observe.models import Sample

# A server without requests is stored once a minute.
RESTED = timedelta(seconds=LONG)
UNKNOWN, DIFFERS = "unknown", "differs"


@dataclass(frozen=True, slots=True)
class PastServer:
    """A server then: up, down, drain, maintenance or unchecked, "differs" where nodes disagreed, "unknown" without any.

    `exact_to` is for how many seconds around the moment that may be so: the samples are of 10 or of 60 seconds.
    """

    name: str
    region: str
    word: str
    check_text: str
    exact_to: int


def servers_then(actor: Actor, pool_id: int, at: datetime, region: str = "") -> list[PastServer]:
    """The servers that the pool has today, of one region where it is named, by region and name. Three queries."""
    pools = seen_pools(actor, Pool.objects.filter(pk=pool_id))
    servers = Server.objects.filter(backend__pool__in=pools, **({"backend__region__name": region} if region else {}))
    rows = list(servers.select_related("backend__region").order_by("backend__region__name", "name"))
    samples = _around([f"srv-{row.pk}" for row in rows], at)
    return [_server(row, samples.get(f"srv-{row.pk}", {}).values()) for row in rows]


def _around(names: list[str], at: datetime) -> dict[str, dict[int, Sample]]:
    """The sample that is nearest before the moment, of each server on each node; shorter ones first."""
    kept = Sample.objects.filter(kind="server", object_id__in=names, at__lte=at, at__gt=at - RESTED)
    found: dict[str, dict[int, Sample]] = defaultdict(dict)
    for sample in kept.order_by("-resolution", "at"):  # what comes later stays
        found[sample.object_id][sample.node_id] = sample
    return found


def _server(row: Server, samples: Iterable[Sample]) -> PastServer:
    seen = [(server_word(sample.status), sample) for sample in samples]
    words = {word for word, _ in seen} - {UNKNOWN}
    word = DIFFERS if len(words) > 1 else words.pop() if words else UNKNOWN
    checks = [sample.check_text for each, sample in seen if each != "up" and sample.check_text]
    exact_to = max((sample.resolution for _, sample in seen), default=SHORT)
    return PastServer(row.name, row.backend.region.name, word, checks[0] if checks else "", exact_to)
