"""What AWS, Google and a fleet would refuse or lose of a load balancer, before anything moves."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse

from apps.core.errors import Invalid, NotFound
from apps.definitions.previewing.portability import TARGETS
from apps.definitions.previewing.portability_report import Group, portability_report
from apps.definitions.selectors import load_balancers, only
from apps.web.kit.pages import PageRequest, page, show

WORDS = {"haproxy": "A fleet of HAProxy", "aws": "AWS", "google": "Google"}
# Where the page of an object is, by the prefix of its id.
PAGES = {"route": "web:route", "pool": "web:pool", "lb": "web:load-balancer"}


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """Every target with what it refuses and what differs there, each verdict once."""
    balancer = only(load_balancers(request.actor), pk)
    asked = request.GET.get("target", "")
    try:
        report = portability_report(request.actor, pk, asked)
    except Invalid as error:
        raise NotFound("This target does not exist.") from error
    targets = [
        {
            "words": WORDS[target],
            "refuses": any(each.refused for each in found),
            "rows": [(each, _objects(each), each.count - len(each.objects)) for each in found],
        }
        for target in TARGETS
        if asked in ("", target)
        for found in [[each for each in report.groups if each.target == target]]
    ]
    return show(request, "pages/portability/detail.html", {"balancer": balancer, "targets": targets, "report": report})


def _objects(group: Group) -> list[tuple[str, str]]:
    """What people call each object, and its page; empty for what has none."""
    return [(label, _page_of(object_id)) for object_id, label in group.objects]


def _page_of(object_id: str) -> str:
    kind, _, number = object_id.partition("-")
    return reverse(PAGES[kind], args=[int(number)]) if kind in PAGES and number.isdecimal() else ""
