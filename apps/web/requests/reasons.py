"""Why a request ended as it did, step by step, with links to what decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.definitions import selectors as definitions
from apps.fleet.models import Fleet
from apps.logs.searching import Record
from apps.logs.words import sentence_of
from apps.observe.show.past_health import DIFFERS, UNKNOWN, PastServer, servers_then
from apps.rollouts import selectors as rollouts

# So many servers that were not up are named.
SAID = 5


@dataclass(frozen=True, slots=True)
class ReasonStep:
    """One step: what it is about, its sentence, and the page of the object, empty where it is gone."""

    about: str
    sentence: str
    url: str = ""


def steps_of(record: Record, actor: Actor) -> list[ReasonStep]:
    """In the order in which a request meets them."""
    where = (*_listener(record), *_route(record, actor))
    return [*where, *_decision(record), *_server(record, actor), *_live(record, actor)]


def _listener(record: Record) -> Iterator[ReasonStep]:
    how = f" over {record.tls}" if record.tls else ""
    yield ReasonStep("Listener", f"{record.load_balancer}/{record.listener} took it{how} on node {record.node}.")


def _route(record: Record, actor: Actor) -> Iterator[ReasonStep]:
    if not record.route:
        return
    route = _row_of(definitions.routes(actor).filter(name=record.route), record.account)
    yield ReasonStep("Route", f"{record.route} won for {record.host}{record.path}.", _page_of("route", route))


def _decision(record: Record) -> Iterator[ReasonStep]:
    sentence = sentence_of(record.why) or (f"Reason: {record.why}." if record.why else "")
    if record.decided_by:
        sentence += f" Decided by {record.decided_by}."
    if sentence:
        yield ReasonStep("Decision", sentence.strip())


def _server(record: Record, actor: Actor) -> Iterator[ReasonStep]:
    if not record.pool:
        return
    pool = _row_of(definitions.pools(actor).filter(name=record.pool), record.account)
    answered = f"{record.server} answered" if record.server else "no server answered"
    where = f" in {record.region}" if record.region else ""
    away = f", away from home ({record.home_region})" if record.region not in ("", record.home_region) else ""
    yield ReasonStep("Pool", f"{record.pool}: {answered}{where}{away}.", _page_of("pool", pool))
    if pool is not None:
        yield ReasonStep("Health then", _health(servers_then(actor, pool, record.time, record.region)))


def _health(servers: Sequence[PastServer]) -> str:
    """How many were up, and which were not; of the servers that the pool has today."""
    if not any(each.word != UNKNOWN for each in servers):
        return "Unknown: no node has numbers of that moment."
    up = sum(each.word == "up" for each in servers)
    others = [each for each in servers if each.word != "up"]
    said = "".join(f"; {_of_server(each)}" for each in others[:SAID]) + (
        f"; {len(others) - SAID} more were not up" if len(others) > SAID else ""
    )
    noun = "server" if len(servers) == 1 else "servers"
    exact = max(each.exact_to for each in servers)
    return f"{up} of {len(servers)} {noun} up{said}. Exact to {exact} seconds."


def _of_server(server: PastServer) -> str:
    check = f" ({server.check_text})" if server.check_text else ""
    words = {UNKNOWN: "is unknown", DIFFERS: "was up on some nodes only", "drain": "was draining",
             "maintenance": "was in maintenance", "unchecked": "was not checked"}  # fmt: skip
    return f"{server.name} in {server.region} {words.get(server.word, f'was {server.word}')}{check}"


def _live(record: Record, actor: Actor) -> Iterator[ReasonStep]:
    """The rollout that was live: the newest one of the fleet that had ended by then."""
    if not actor.is_operator or not Fleet.objects.filter(name=record.fleet).exists():
        return
    ended = rollouts.rollouts(actor).filter(fleet__name=record.fleet, finished_at__lte=record.time, state="done")
    if newest := ended.order_by("-finished_at").first():
        who = f" by {newest.actor}" if newest.actor else ""
        since = f"{newest.finished_at:%Y-%m-%d %H:%M:%S} UTC"
        sentence = f"Rollout {newest.pk}{who} of fleet {record.fleet} was live since {since}."
        yield ReasonStep("Configuration", sentence, reverse("web:rollout", args=[newest.pk]))


def _row_of(rows: QuerySet[Any], account: int) -> int | None:
    """The account's object, else one that is shared with it; None when there is none any more."""
    found = list(rows.values_list("pk", "account_id")[:2])
    own = [pk for pk, owner in found if owner == account] or [pk for pk, _ in found]
    return own[0] if own else None


def _page_of(kind: str, pk: int | None) -> str:
    return reverse(f"web:{kind}", args=[pk]) if pk is not None else ""
