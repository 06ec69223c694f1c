"""How far DNS zones and their records have come."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.api.v1.schemas.nouns.traffic import words_of
from apps.definitions import models as rows


class RecordFacts(words.Shown):
    """Its whole name."""

    full_name = serializers.CharField(max_length=253)


class Served(words.Shown):
    """What one resolver answered when it was last asked."""

    resolver = serializers.CharField()
    values = serializers.ListField(child=serializers.CharField())
    as_wanted = serializers.BooleanField()
    error = words.text(400)
    asked_at = words.instant()


class RecordState(words.Shown):
    """One record as it is wanted, pushed and served."""

    id = words.ident(source="record.id")
    name = serializers.CharField(max_length=253)
    type = words.word(words_of(rows.Record, "type"), source="record.type")
    ttl = words.whole(30, 86_400, source="record.ttl")
    values = serializers.ListField(child=serializers.CharField())
    pushed = serializers.BooleanField()
    served = Served(many=True)
    drift = words.Anything(allow_null=True)
    in_the_way = words.Anything(allow_null=True)
    refused = words.text(2000)


class ZoneState(words.Shown):
    """How far a zone has come."""

    zone = serializers.CharField(max_length=253)
    status = serializers.CharField()
    message = words.text(2000)
    records = RecordState(many=True)


class SideOfEdit(words.Shown):
    """A record set on one side of a push."""

    ttl = words.count()
    values = serializers.ListField(child=serializers.CharField())


class ZoneEdit(words.Shown):
    """One record set that a push would write: null where it is not there."""

    name = serializers.CharField(max_length=253)
    type = serializers.CharField()
    before = SideOfEdit(allow_null=True)
    after = SideOfEdit(allow_null=True)


class ZoneDifferences(words.Shown):
    """What a push would write."""

    edits = ZoneEdit(many=True)


class RecordKey(serializers.Serializer[Any]):
    """A whole name and a type."""

    name = serializers.CharField(max_length=253)
    type = serializers.CharField(max_length=5)


class Repair(words.Sent):
    """Which records; all of one's own when left out."""

    records = RecordKey(many=True, required=False)
    adopt_existing = serializers.BooleanField(required=False)
