"""The weights of a route, changed at once: a share, or everything, to one of its pools."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.canaries.plan import ALL, weights_at
from apps.definitions.selectors import describe, only, routes
from apps.web.kit.pages import PageRequest, post_page
from apps.web.kit.saving import Typed, save, tell, telling, version_sent


@post_page
def send(request: PageRequest, pk: int) -> HttpResponse:
    """A pool gets `percent` of the requests, else all of them; the others share the rest as before, and all stay."""
    row = only(routes(request.actor), pk)
    request.actor.may_write()
    spec = describe(row)
    shares, wanted = spec["action"].get("pools", []), request.POST.get("pool", "")
    before = {each["pool"]: int(each["weight"]) for each in shares}
    percent = _percent(request.POST.get("percent", str(ALL)))
    if percent is None or wanted not in before:
        messages.error(request, "Choose one of the pools of the route, and a share of 1 to 100 %.")
    elif percent < ALL and sum(before.values()) == before[wanted]:
        messages.error(request, f"Only {wanted} gets requests. Give another pool a weight first.")
    else:
        weights = weights_at(before, wanted, percent)
        changed = spec | {"action": {"pools": [each | {"weight": weights[each["pool"]]} for each in shares]}}
        part = "all" if percent == ALL else f"{percent} % of the"
        reason = f"Everything to {wanted}" if percent == ALL else f"{percent} % to {wanted}"
        typed = Typed(kind="Route", row=row, spec=changed, version=version_sent(request), reason=reason)
        done = f"Pool {wanted} gets {part} requests of route {row.name} moments later."
        with telling(request):
            tell(request, typed, save(request, typed), done)
    return redirect("web:route", pk)


def _percent(text: str) -> int | None:
    found = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else 0
    return found if 0 < found <= ALL else None
