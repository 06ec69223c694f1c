"""What AWS, Google and a fleet would refuse or lose of a load balancer, before anything moves."""

from __future__ import annotations

from django.http import HttpResponse

from apps.core.errors import Invalid, NotFound
from apps.definitions.previewing.portability import TARGETS, Incompatibility, portability_of
from apps.definitions.selectors import load_balancers, only
from apps.web.kit.pages import PageRequest, page, show

WORDS = {"haproxy": "A fleet of HAProxy", "aws": "AWS", "google": "Google"}
# Where the page of an object is, by the prefix of its id.
PAGES = {"route": "web:route", "pool": "web:pool", "lb": "web:load-balancer"}


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """Every target with what it refuses and what differs there."""
    balancer = only(load_balancers(request.actor), pk)
    asked = request.GET.get("target", "")
    try:
        found = portability_of(request.actor, pk, asked)
    except Invalid as error:
        raise NotFound("This target does not exist.") from error
    targets = [
        (
            WORDS[target],
            [_row(each) for each in found if each.target == target and each.refused],
            [_row(each) for each in found if each.target == target and not each.refused],
        )
        for target in TARGETS
        if asked in ("", target)
    ]
    return show(request, "pages/portability/detail.html", {"balancer": balancer, "targets": targets})


def _row(incompatibility: Incompatibility) -> tuple[Incompatibility, str, int]:
    """The incompatibility, the page of its object and the number there; no page for what has none."""
    kind, _, number = incompatibility.object_id.partition("-")
    return incompatibility, PAGES.get(kind, ""), int(number) if number.isdecimal() else 0
