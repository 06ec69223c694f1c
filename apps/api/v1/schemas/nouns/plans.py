"""Plans that were shown and can be applied exactly so."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words, writing


class Plan(words.Shown):
    """A plan: who made it, how long it can be applied, and who did so."""

    id = serializers.RegexField("^[0-9a-f]{32}$")
    manager = words.text(63)
    prune = serializers.BooleanField()
    actor = words.text(150)
    created_at = words.instant()
    expires_at = words.instant()
    applied_at = words.instant(allow_null=True)
    applied_by = words.text(150)
    counts = writing.Counts(source="summary.counts")


class PlanDetail(Plan):
    """A plan with all that it would do."""

    stored = serializers.BooleanField()
    changes = writing.Change(many=True)
    generations = serializers.DictField(child=words.count())
    fleets = writing.FleetDifference(many=True)
    stacks = writing.StackDifference(many=True)
    zones = writing.ZoneDifference(many=True)
    warnings = serializers.ListField(child=serializers.CharField())
    kept = serializers.ListField(child=serializers.CharField(), help_text=writing.KEPT)
    take_over = serializers.ListField(child=serializers.CharField(), help_text="Fields that it sets anyway.")
