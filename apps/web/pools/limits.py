"""The small form beside each region of a pool that changes its limit."""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from apps.core.errors import Conflict
from apps.definitions.models import Backend, Pool
from apps.definitions.services import set_limit
from apps.definitions.shapes.traffic.pool import LIMITS, SCOPES
from apps.overflow.preview import overloads
from apps.web.kit.pages import PageRequest, post_page
from apps.web.kit.saving import telling, version_sent
from apps.web.kit.shape_fields import as_number, written
from apps.web.kit.undoing import say_done


def limit_words(backend: Backend) -> str:
    """The limit as a sentence's part: `10 requests/s for all servers together`."""
    if backend.limit_kind == "none":
        return "no limit"
    noun, per = ("request", "/s") if backend.limit_kind == "rate" else ("connection", "")
    scope = "per server" if backend.limit_scope == "server" else "for all servers together"
    return f"{backend.limit_value:,} {noun}{'' if backend.limit_value == 1 else 's'}{per} {scope}"


def limit_link(backend: Backend, now_rps: float | None, wanted_rps: float) -> str:
    """The form with the value by which the region takes so much; empty where it has no rate to change in proportion.

    Scope, traffic share and the number of ready servers stay, so what it takes is as many times larger as the value.
    """
    if backend.limit_kind != "rate" or not now_rps:
        return ""
    value = max(1, round((backend.limit_value or 0) * wanted_rps / now_rps))
    asked = urlencode({"in": backend.region.name, "limit": value})
    return f"{reverse('web:pool', args=[backend.pool_id])}?{asked}#limit-{backend.pk}"


def limits_typed(query: QueryDict) -> dict[str, str]:
    """Region → the value that such a link brings into its form."""
    value = query.get("limit", "")
    return {query.get("in", ""): value} if re.fullmatch(r"[0-9]{1,8}", value) else {}


def limit_choices(backend: Backend, typed: str = "") -> dict[str, Any]:
    """What the form shows: the choices, and what is stored, or the value that a link brings."""
    return {
        "kinds": [(word, text, word == backend.limit_kind) for word, text in LIMITS.items()],
        "scopes": [(word, text, word == backend.limit_scope) for word, text in SCOPES.items()],
        "value": typed or backend.limit_value or "",
        "scaler": written(backend.capacity_scaler),
    }


def limit_notes(pool: Pool) -> dict[str, str]:
    """Region → where its limit came from: `10 requests/s for all servers together, set by ada on 21 Nov 2026`."""
    found = {}
    for backend in pool.backends.all():
        if backend.limit_set_at and backend.limit_kind != "none":
            day = f"{backend.limit_set_at:%-d %b %Y}"
            text = f"{limit_words(backend)}, set by {backend.limit_set_by} on {day}"
            measured = f", measured by {backend.limit_measured_by}" if backend.limit_measured_by else ""
            found[backend.region.name] = text + measured
    return found


@post_page
def change(request: PageRequest, pk: int) -> HttpResponse:
    """Set the limit of one region; a refusal, also of what changed meanwhile, is said at the top of the pool's page.

    One that would put a region over its limit at the traffic of now needs a tick.
    """
    region, reason = request.POST.get("region", "")[:63], request.POST.get("reason", "")[:400]
    set_it = partial(
        set_limit,
        actor=request.actor,
        pool_id=pk,
        region=region,
        reason=reason,
        expected_version=version_sent(request),
        **_typed(request.POST),
    )
    with telling(request):
        if not request.POST.get("accept") and (warnings := overloads(request.actor, set_it)):
            raise Conflict(
                f"The limit is unchanged. {' '.join(warnings)} To set it anyway, tick “Set the "
                f"limit even if the current traffic does not fit”."
            )
        backend = set_it()
        say_done(request, f"The limit in {backend.region.name} is changed and is being rolled out to every fleet.")
    return redirect("web:pool", pk=pk)


def _typed(post: QueryDict) -> dict[str, Any]:
    """Numbers as numbers; what is none goes on as text and is refused with a sentence."""
    kind, value = post.get("kind", ""), post.get("value", "").strip()
    found: dict[str, Any] = {"kind": kind, "scope": post.get("scope") or None}
    if kind != "none":
        found["value"] = as_number(value)
    if scaler := post.get("capacity_scaler", "").strip():
        found["capacity_scaler"] = as_number(scaler)
    return found
