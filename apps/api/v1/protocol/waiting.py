"""Who may hold a thread while a change becomes live, and waiting after a transaction's end."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

from apps.accounts.actors import Actor
from apps.api.v1.protocol import requests
from apps.api.v1.shapes import URLS
from apps.fleet.models import Fleet
from apps.fleet.selectors import fleet_ids
from apps.rollouts.selectors import wait_until_live
from apps.rollouts.waiting_for import Named, missing

# Of the 4 threads of a process that work (deploy/systemd): one is always left for requests that do not wait.
OF_ACCOUNT, OF_PROCESS = 2, 3
KIND_OF_NOUN = {noun: kind for kind, noun in URLS.items()}

_waiting: Counter[int] = Counter()
_lock = threading.Lock()


@contextmanager
def turn(request: HttpRequest, account: int) -> Iterator[bool]:
    """Whether a request that asks to wait may; one that may not is answered as things stand."""
    if "wait" not in request.GET:
        yield True
        return
    with _lock:
        may = _waiting[account] < OF_ACCOUNT and _waiting.total() < OF_PROCESS
        _waiting[account] += may
    try:
        yield may
    finally:
        with _lock:
            _waiting[account] -= may


def taken_out(request: HttpRequest) -> int:
    """Take `wait` out of the query, so that the view answers at once; returns its seconds. Raises Invalid."""
    seconds = requests.wait(Request(request))
    query = request.GET.copy()
    query.pop("wait", None)
    request.GET = query  # type: ignore[assignment] # Django's own is immutable, and so is this from here on
    return seconds


def until_live(request: HttpRequest, response: HttpResponse, actor: Actor, seconds: int) -> None:
    """Wait for the generations that the answer names; say in a header and in its body whether they are live.

    Where they are not, the answer names what is missing: `waits_for`, and a header for answers that show an object.
    """
    if not seconds or response.status_code >= 400 or request.GET.get("dry_run"):
        return
    body = _body(response)
    fleets = carrying(actor) if _changed_nothing(body) else fleet_ids(_fleets(response, body))
    live = wait_until_live(fleets, None, seconds)
    waits_for = missing(actor, fleets, _objects(body))
    live = live and not waits_for
    response["X-Spillway-Live"] = "true" if live else "false"
    if waits_for and not live:
        response["X-Spillway-Waits-For"] = ", ".join(f"{each.fleet}={each.reason}" for each in waits_for)
    if isinstance(body, dict) and "generations" in body:
        body["live"] = live
        body["waits_for"] = [] if live else [asdict(each) for each in waits_for]
        response.content = json.dumps(body).encode()


def _body(response: HttpResponse) -> Any:
    """The answer's JSON; None where it has none."""
    try:
        return json.loads(response.content) if response.content else None
    except ValueError:
        return None


def _fleets(response: HttpResponse, body: Any) -> list[str]:
    """Names of the fleets that the change reaches."""
    named = response.headers.get("X-Spillway-Generation", "")
    found = [part.partition("=")[0] for part in named.split(", ") if part]
    generations = body.get("generations") if isinstance(body, dict) else None
    return [*found, *(generations if isinstance(generations, dict) else ())]


def _changed_nothing(body: Any) -> bool:
    """Whether a whole document or batch was as it is stored: then what is stored may still be on its way."""
    if isinstance(body, dict) and "results" in body:
        return not body.get("generations")
    counts = body.get("counts") if isinstance(body, dict) else None
    return isinstance(counts, dict) and not any(counts.get(name) for name in ("create", "update", "delete"))


def carrying(actor: Actor) -> list[int]:
    """The fleets that carry what the caller's account defined; of an operator all that have a load balancer."""
    rows = Fleet.objects.exclude(load_balancers=None)
    own = rows if actor.is_operator else rows.filter(load_balancers__routes__account=actor.account)
    return list(own.order_by().values_list("pk", flat=True).distinct())


def _objects(body: Any) -> set[Named]:
    """What the answer speaks of, and is still there; that it was so already does not make it live."""
    if not isinstance(body, dict):
        return set()
    found = set()
    for each in (body, *body.get("changes", ()), *body.get("results", ())):
        if isinstance(each, dict) and each.get("account") and each.get("action") != "delete":
            found.add(_named(each))
    return found


def _named(body: Mapping[str, Any]) -> Named:
    """The kind and `account/name` of an object, or of the pool of a part."""
    noun = str(body.get("url") or "").removeprefix("/api/v1/").partition("/")[0]
    kind, name = body.get("kind") or KIND_OF_NOUN.get(noun, ""), body.get("name")
    if body.get("pool"):  # a server, or what a pool takes in a region
        kind, name = "Pool", body["pool"]
    return str(kind), f"{body['account']}/{name}"
