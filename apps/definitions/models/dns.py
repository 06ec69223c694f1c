"""Rows of DNS: zones and their records."""

from __future__ import annotations

from django.db import models

from apps.compiler.model.stack import RecordType
from apps.definitions.definition import Definition, choices
from apps.definitions.models.traffic import LoadBalancer
from apps.definitions.shapes.traffic.zone import ZoneDriver
from apps.fleet.models import Stack, StaticIP


class Zone(Definition):
    """A DNS zone of the operator: `domain` (no final dot), which server serves it, and how it is written there.

    `driver` rfc2136 (server `host:port`, TSIG key `key_name`), powerdns (server is the URL of its API), route53 (the
    `stack` keeps it), or memory (tests). `credentials` is a reference (`env:NAME`). A grant of a tag (`key=value` of
    `tags`) lets another account see the zone and keep records of its own in it. `resolvers` are asked what is really
    served (`address` or `address:port`). `desired_generation` rises with every change of the zone or its records.
    """

    Driver = ZoneDriver

    domain = models.CharField(max_length=253, unique=True)
    driver = models.CharField(max_length=8, choices=[(each.value, each.name.title()) for each in Driver])
    server = models.CharField(max_length=400, blank=True, default="")
    key_name = models.CharField(max_length=253, blank=True, default="")
    key_algorithm = models.CharField(max_length=20, blank=True, default="hmac-sha256")
    credentials = models.CharField(max_length=2048, blank=True, default="")
    stack = models.ForeignKey(Stack, on_delete=models.PROTECT, null=True, related_name="zones")
    resolvers = models.JSONField(default=list)
    tags = models.JSONField(default=dict)
    desired_generation = models.PositiveBigIntegerField(default=0)


class Record(Definition):
    """One set of DNS records of a zone: all values of one name and type.

    `label` is the name below the zone's domain (`www`, `*.api`, `@` for the domain itself). Exactly one of `values`,
    `static_ip` (the record follows the address) and `load_balancer` (its addresses; an alias on Route 53) says what
    is served.
    """

    zone = models.ForeignKey(Zone, on_delete=models.PROTECT, related_name="records")
    label = models.CharField(max_length=253)
    type = models.CharField(max_length=5, choices=choices(RecordType))
    ttl = models.PositiveIntegerField(default=300)
    values = models.JSONField(default=list)
    static_ip = models.ForeignKey(StaticIP, on_delete=models.PROTECT, null=True, related_name="records")
    load_balancer = models.ForeignKey(LoadBalancer, on_delete=models.PROTECT, null=True, related_name="records")
    tags = models.JSONField(default=dict)

    class Meta(Definition.Meta):
        constraints = (  # type: ignore[assignment]  # one more than every definition has
            *Definition.Meta.constraints,
            models.UniqueConstraint(fields=("zone", "label", "type"), name="one_record_set_per_name_and_type"),
        )
        indexes = (models.Index(fields=("zone", "label", "type")),)
