"""SHOW to machines: who may hold a thread while a change becomes live, and waiting after a transaction's end."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

from apps.accounts.actors import Actor
from apps.api.v1 import requests
from apps.fleet.models import Fleet
from apps.fleet.selectors import fleet_ids
from apps.rollouts.selectors import wait_until_live
from apps.rollouts.waiting_for import missing

# Of the 4 threads of a process that work (deploy/systemd): one is always left for requests that do not wait.
OF_ACCOUNT, OF_PROCESS = 2, 3

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
    fleets = _carrying(actor) if _changed_nothing(body) else fleet_ids(_fleets(response, body))
    live = wait_until_live(fleets, None, seconds)
    waits_for = missing(actor, fleets, _labels(body))
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
    """Whether a whole document was as it is stored: then what is stored may still be on its way."""
    counts = body.get("counts") if isinstance(body, dict) else None
    return isinstance(counts, dict) and not any(counts.get(name) for name in ("create", "update", "delete"))


def _carrying(actor: Actor) -> list[int]:
    """The fleets that carry what the caller's account defined; of an operator all that have a load balancer."""
    rows = Fleet.objects.exclude(load_balancers=None)
    own = rows if actor.is_operator else rows.filter(load_balancers__routes__account=actor.account)
    return list(own.order_by().values_list("pk", flat=True).distinct())


def _labels(body: Any) -> set[str]:
    """What the changed objects are called in what nodes run."""
    if not isinstance(body, dict):
        return set()
    found = set()
    for each in (body, *body.get("changes", ()), *body.get("results", ())):
        if isinstance(each, dict) and each.get("name") and each.get("action") not in ("delete", "unchanged"):
            found |= {str(each["name"]), f"{each.get('account')}/{each['name']}"}
    return found
