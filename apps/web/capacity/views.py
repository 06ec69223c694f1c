"""Capacity tests: the list, one test with its runs, and taking it away."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.accounts.quotas import quota
from apps.capacity import selectors
from apps.capacity.models import Run
from apps.capacity.run.checking import checks, refusal
from apps.core.clock import now
from apps.core.written.numbers import plain
from apps.definitions.models import CapacityTest
from apps.definitions.selectors import capacity_tests, describe, only
from apps.web.capacity.result import capacity_of, confidence_of
from apps.web.capacity.rows import rows_of
from apps.web.capacity.words import mark_of, what_happens
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import deleted_by_name
from apps.web.kit.worst_first import newest_page

PER_PAGE = 50
RUNS_SHOWN = 20
OTHERS_SHOWN = 100


@page
def index(request: PageRequest) -> HttpResponse:
    """Tests a keyset page at a time, in the order account, name; `?q=` looks into test, pool, region and account."""
    rows = capacity_tests(request.actor)
    query, after = request.GET.get("q", "").strip()[:63], request.GET.get("after", "")
    if query and query.isprintable():
        parts = (Q(name__icontains=query), Q(pool__name__icontains=query), Q(region__name__icontains=query))
        rows = rows.filter(parts[0] | parts[1] | parts[2] | Q(account__name__icontains=query))
    account, slash, name = after.partition("/")
    if slash and after.isprintable():
        rows = rows.filter(Q(account__name__gt=account) | Q(account__name=account, name__gt=name))
    found = list(rows[: PER_PAGE + 1])
    shown = found[:PER_PAGE]
    context = {
        "rows": rows_of(request.actor, shown),
        "query": query,
        "after": after,
        "next_after": f"{shown[-1].account.name}/{shown[-1].name}" if len(found) > PER_PAGE else None,
        "no_quota": quota(request.actor.account, "test_rate") == 0,
    }
    return show(request, "pages/capacity_tests/list.html", context)


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One test: what it asks, what it found, its runs newest first (`?before=` goes on)."""
    test = only(capacity_tests(request.actor), pk)
    runs = selectors.runs(request.actor).filter(test=test)
    found, context = newest_page(runs, request.GET.get("before", ""), RUNS_SHOWN)
    context |= {
        "test": test,
        "row": rows_of(request.actor, [test])[0],
        "sentences": what_happens(describe(test)),
        "runs": [_run(run) for run in found],
    }
    if not request.GET.get("partial"):
        answers = checks(test, now())
        context |= {
            "checks": answers,
            "others": _comparable(request, test),
            "comparisons": selectors.comparisons(request.actor).filter(Q(first=test) | Q(second=test))[:5],
            "blocked": refusal(answers),
        }
    return show(request, "pages/capacity_tests/detail.html", context)


def _comparable(request: PageRequest, test: CapacityTest) -> QuerySet[CapacityTest]:
    """Other tests that may be run in turn with this one: of the same account, with the same kind of load."""
    rows = capacity_tests(request.actor).filter(account=test.account, load__kind=test.load.get("kind"))
    return rows.exclude(pk=test.pk)[:OTHERS_SHOWN]


def _run(run: Run) -> dict[str, Any]:
    """A row of the list of runs."""
    capacity = capacity_of(run)
    return {
        "run": run,
        "mark": mark_of(run),
        "capacity": plain(capacity) if capacity is not None else "",
        "confidence": confidence_of(run),
    }


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Take a test away once its name was typed; its runs stay."""
    request.actor.may_write()
    test: CapacityTest = only(capacity_tests(request.actor), pk)
    done = f"Capacity test {test.name} is deleted. Its runs and the limits that they set stay."
    gone = deleted_by_name(request, "CapacityTest", test, done)
    return redirect("web:capacity-tests") if gone else redirect("web:capacity-test", pk=pk)
