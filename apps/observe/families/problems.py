"""Metrics of what is wrong now, in the words of the pages, and of certificates that end."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.definitions.models import Certificate, Pool
from apps.observe.selectors import problems

# Whoever may read metrics reads all of them, also before there is an account.
READER = Actor("metrics", Account(kind=Account.Kind.OPERATOR), Membership.Role.VIEWER)


def families() -> Iterator[Metric]:
    """Every problem, and when each certificate ends."""
    found = GaugeMetricFamily(
        "spillway_problem",
        "1 for each problem that the pages show; severity 1 is down, 3 is worth a look.",
        labels=["kind", "account", "name", "reason", "severity"],
    )
    accounts = dict(Pool.objects.order_by().values_list("pk", "account__name"))
    for each in problems(READER):
        account = accounts.get(each.object_id, "") if each.kind == "pool" else ""
        found.add_metric([each.kind, account, each.label, each.reason, str(each.severity)], 1)
    yield found
    ends = GaugeMetricFamily(
        "spillway_certificate_not_after_seconds", "When a certificate ends, in Unix time.", labels=["account", "name"]
    )
    for name, account, at in Certificate.objects.order_by("pk").values_list("name", "account__name", "not_after"):
        ends.add_metric([account, name], at.timestamp())
    yield ends
