"""SHOW to people: what AWS, Google and a fleet would refuse or lose of a load balancer, before anything moves."""

from __future__ import annotations

from django.http import HttpResponse

from apps.core.errors import Invalid, NotFound
from apps.definitions.portability import TARGETS, Loss, portability_of
from apps.definitions.selectors import load_balancers, only
from apps.web.pages import PageRequest, page, show

WORDS = {"haproxy": "A fleet of HAProxy", "aws": "AWS", "google": "Google"}
# Where the page of an object is, by the prefix of its id.
PAGES = {"route": "web:route", "pool": "web:pool", "lb": "web:load-balancer"}


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """Every target with what it refuses and what differs there."""
    balancer = only(load_balancers(request.actor), pk)
    target = request.GET.get("target", "")
    try:
        losses = portability_of(request.actor, pk, target)
    except Invalid as error:
        raise NotFound("This target does not exist.") from error
    targets = [
        (
            WORDS[each],
            [_row(loss) for loss in losses if loss.target == each and loss.refused],
            [_row(loss) for loss in losses if loss.target == each and not loss.refused],
        )
        for each in TARGETS
        if target in ("", each)
    ]
    return show(request, "pages/portability/detail.html", {"balancer": balancer, "targets": targets})


def _row(loss: Loss) -> tuple[Loss, str, int]:
    """The loss, the page of its object and the number there; no page for what has none."""
    kind, _, number = loss.object_id.partition("-")
    return loss, PAGES.get(kind, ""), int(number) if number.isdecimal() else 0
