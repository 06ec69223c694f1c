"""Rows: rules of accounts, their channels, and pages that tell visitors."""

from __future__ import annotations

from django.db import models

from apps.definitions.definition import Definition


class AlertRule(Definition):
    """What makes an alert; one with the name of a built-in rule takes its place in its account.

    Null is what the watch has by default (shapes/operations/alert_watches.py).
    """

    watches = models.CharField(max_length=30)
    only = models.JSONField(default=list)
    threshold = models.FloatField(null=True)
    for_s = models.PositiveIntegerField(null=True)
    severity = models.CharField(max_length=8, null=True)
    enabled = models.BooleanField(default=True)


class AlertChannel(Definition):
    """Whom alerts are told; `sealed_secret` is what lets us in there. `quiet` is a document, null for none."""

    type = models.CharField(max_length=12)
    to = models.JSONField(default=list)
    url = models.CharField(max_length=2048, null=True)
    sealed_secret = models.BinaryField(null=True)
    severities = models.JSONField(default=list)
    quiet = models.JSONField(null=True)
    wait_minutes = models.PositiveIntegerField(default=0)
    enabled = models.BooleanField(default=True)


class StatusPage(Definition):
    """What visitors read of an account: `components` is `[{name, routes}]`, routes by their names in the account.

    A page that is public is found by its name alone, so no two of them have the same. `rules` are the names of alert
    rules that open incidents on it.
    """

    title = models.CharField(max_length=120)
    public = models.BooleanField(default=False)
    components = models.JSONField(default=list)
    rules = models.JSONField(default=list)

    class Meta(Definition.Meta):
        constraints = (  # type: ignore[assignment]  # one more than every definition has
            *Definition.Meta.constraints,
            models.UniqueConstraint(fields=("name",), condition=models.Q(public=True), name="public_page_by_name"),
        )
