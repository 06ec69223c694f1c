"""Why a request ended as it did, step by step, with links to what decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.definitions import selectors as definitions
from apps.fleet.models import Fleet
from apps.logs.searching import Record
from apps.logs.words import sentence_of
from apps.rollouts import selectors as rollouts


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
    url = _page_of("route", definitions.routes(actor).filter(name=record.route), record.account)
    yield ReasonStep("Route", f"{record.route} won for {record.host}{record.path}.", url)


def _decision(record: Record) -> Iterator[ReasonStep]:
    sentence = sentence_of(record.why) or (f"Reason: {record.why}." if record.why else "")
    if record.decided_by:
        sentence += f" Decided by {record.decided_by}."
    if sentence:
        yield ReasonStep("Decision", sentence.strip())


def _server(record: Record, actor: Actor) -> Iterator[ReasonStep]:
    if not record.pool:
        return
    url = _page_of("pool", definitions.pools(actor).filter(name=record.pool), record.account)
    answered = f"{record.server} answered" if record.server else "no server answered"
    where = f" in {record.region}" if record.region else ""
    away = f", away from home ({record.home_region})" if record.region not in ("", record.home_region) else ""
    yield ReasonStep("Pool", f"{record.pool}: {answered}{where}{away}.", url)


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


def _page_of(kind: str, rows: QuerySet[Any], account: int) -> str:
    """The page of the account's object, else of one that is shared with it; empty when there is none any more."""
    found = list(rows.values_list("pk", "account_id")[:2])
    own = [pk for pk, owner in found if owner == account] or [pk for pk, _ in found]
    return reverse(f"web:{kind}", args=[own[0]]) if own else ""
