"""Metrics of what is wrong now, in the words of the pages, of certificates that end, and of key sets that age."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.core.clock import now
from apps.definitions.models import Certificate, KeySet, LoadBalancer, Pool, Route
from apps.observe.selectors import problems

# Whoever may read metrics reads all of them, also before there is an account.
READER = Actor("metrics", Account(kind=Account.Kind.OPERATOR), Membership.Role.VIEWER)


def families() -> Iterator[Metric]:
    """Every problem, when each certificate ends, and how old each key set is."""
    found = GaugeMetricFamily(
        "spillway_problem",
        "1 for each problem that the pages show; severity 1 is down, 3 is worth a look.",
        labels=["kind", "account", "name", "reason", "severity"],
    )
    accounts = {
        kind: dict(model._default_manager.order_by().values_list("pk", "account__name"))
        for kind, model in (("pool", Pool), ("key_set", KeySet), ("load_balancer", LoadBalancer), ("route", Route))
    }
    for each in problems(READER):
        account = accounts[each.kind].get(each.object_id, "") if each.kind in accounts else ""
        found.add_metric([each.kind, account, each.label, each.reason, str(each.severity)], 1)
    yield found
    ends = GaugeMetricFamily(
        "spillway_certificate_not_after_seconds", "When a certificate ends, in Unix time.", labels=["account", "name"]
    )
    for name, account, at in Certificate.objects.order_by("pk").values_list("name", "account__name", "not_after"):
        if at is not None:  # an automatic one that was not issued yet
            ends.add_metric([account, name], at.timestamp())
    yield ends
    yield from _of_key_sets()


def _of_key_sets() -> Iterator[Metric]:
    """How old each answer of an issuer is; a set that never came has no age."""
    labels = ["account", "url"]
    ages = GaugeMetricFamily(
        "spillway_key_set_age_seconds", "Time since the last successful fetch of a key set.", labels=labels
    )
    failures = GaugeMetricFamily(
        "spillway_key_set_failures", "Fetches of a key set that failed since the last success.", labels=labels
    )
    for account, url, at, failed in KeySet.objects.order_by("pk").values_list(
        "account__name", "url", "fetched_at", "failures"
    ):
        failures.add_metric([account, url], failed)
        if at is not None:
            ages.add_metric([account, url], (now() - at).total_seconds())
    yield ages
    yield failures
