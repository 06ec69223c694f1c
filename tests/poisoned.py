"""Rows past every check that nodes are to refuse: each returns a word of it in the files of nodes, and its id."""

from __future__ import annotations

from apps.definitions.models import Pool, Route, RoutePool

POISON = "poison-of-a-customer"


def poison_route(owner: str) -> tuple[str, str]:
    """A path that nodes are to refuse; its word in the bundle and its id."""
    row = Route.objects.get(account__name=owner)
    Route.objects.filter(pk=row.pk).update(path=f"/{POISON}")
    return POISON, f"route-{row.pk}"


def poison_answer(owner: str) -> tuple[str, str]:
    """A body that nodes are to refuse: a section of its own in haproxy.cfg."""
    row = Route.objects.get(account__name=owner)
    RoutePool.objects.filter(route=row).delete()
    answer = {"status": 200, "content_type": "text/plain", "body": POISON}
    Route.objects.filter(pk=row.pk).update(fixed_response=answer, action="fixed_response")
    return POISON, f"route-{row.pk}"


def poison_pool(owner: str) -> tuple[str, str]:
    """A time-out that nodes are to refuse."""
    row = Pool.objects.get(account__name=owner)
    Pool.objects.filter(pk=row.pk).update(server_timeout_ms=31_337)
    return "31337", f"pool-{row.pk}"
