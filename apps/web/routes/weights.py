"""The weights of a route, changed at once: everything to one of its pools."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.definitions.selectors import describe, only, routes
from apps.web.kit.pages import PageRequest, post_page
from apps.web.kit.saving import Typed, save_or_attach_errors, tell, version_sent


@post_page
def send_all(request: PageRequest, pk: int) -> HttpResponse:
    """Promote or abort a canary: the pool gets weight 100, every other one 0; they stay in the route."""
    row = only(routes(request.actor), pk)
    request.actor.may_write()
    spec = describe(row)
    wanted, shares = request.POST.get("pool", ""), spec["action"].get("pools", [])
    if wanted not in [each["pool"] for each in shares]:
        messages.error(request, "Choose one of the pools of the route.")
        return redirect("web:route", pk)
    pools = [each | {"weight": 100 if each["pool"] == wanted else 0} for each in shares]
    changed = spec | {"action": {"pools": pools}}
    reason = f"Everything to {wanted}"
    typed = Typed(kind="Route", row=row, spec=changed, version=version_sent(request), reason=reason)
    saved = save_or_attach_errors(request, typed, lambda invalid: messages.error(request, invalid.detail))
    if saved is not None:
        tell(request, typed, saved, f"Pool {wanted} gets all requests of route {row.name} moments later.")
    return redirect("web:route", pk)
