"""What is written on status pages."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.api.v1.schemas.derived import serializer_of
from apps.status.shapes import LONGEST, IncidentSpec, UpdateSpec
from apps.status.states import PLANNED, STATUSES, State


class IncidentUpdate(words.Shown):
    """What was written about an incident; nobody's name stands there where an alert rule did."""

    at = words.instant()
    status = words.text(20, source="word")
    text = words.text(LONGEST)
    written_by = words.text(150)


class Incident(words.Shown):
    """What visitors of a status page are told; planned maintenance is one with `ends_at`."""

    id = words.ident()
    account = words.name(source="page.account.name")
    page = words.name(source="page.name")
    number = words.whole(1, 2**31)
    title = words.text(120)
    status = words.word([*STATUSES, *PLANNED])
    impacts = serializers.DictField(child=words.word([each.value for each in State]), help_text="By component.")
    begins_at = words.instant()
    ends_at = words.instant(allow_null=True)
    over_at = words.instant(allow_null=True)
    automatic = serializers.BooleanField(help_text="Whether an alert rule opened it and will resolve it.")
    created_at = words.instant()
    created_by = words.text(150)
    updates = IncidentUpdate(many=True)


class CreateIncident(words.Sent):
    """A new incident of the status page with this name."""

    page = words.name()
    account = words.name(required=False)
    spec = serializer_of(IncidentSpec)()


class WriteUpdate(words.Sent):
    """What is told next."""

    spec = serializer_of(UpdateSpec)()
