"""How far DNS zones have come: wanted against served, what a push would write, what drifted."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import zones as shown
from apps.api.v1.views import one
from apps.api.v1.writes import no_dry_run
from apps.core.errors import MISSING, FieldError, Invalid, NotFound
from apps.definitions.models import Zone
from apps.definitions.selectors import zones
from apps.dns import selectors, services


def _zone(request: Request, pk: str) -> Zone:
    row: Zone = one(zones(requests.actor_of(request)), pk)
    return row


class State(APIView):
    """GET how far a zone has come, and its records as they are wanted and served; each account reads its own."""

    def get(self, request: Request, pk: str) -> Response:
        """`{status, message, records}`."""
        actor, zone = requests.actor_of(request), _zone(request, pk)
        state = selectors.state_of_zone(actor, zone)
        records = [shown.RecordState.of(each) for each in selectors.record_states(actor, zone)]
        return Response(shown.ZoneState.of(state, zone=zone.domain, records=records))


class Differences(APIView):
    """GET what a push would write now, asked of the server itself; operators only."""

    def get(self, request: Request, pk: str) -> Response:
        """`{edits: [{name, type, before, after}]}`."""
        actor, zone = requests.actor_of(request), _zone(request, pk)
        if not actor.is_operator:  # it tells of everybody's records
            raise NotFound(MISSING)
        found = services.preview(actor=actor, zone_id=zone.pk)
        return Response(shown.ZoneDifferences.of(found.plan))


class Repair(APIView):
    """POST: write what is wanted over what somebody changed on the server; customers repair their own records."""

    def post(self, request: Request, pk: str) -> Response:
        """`{records?: [{name, type}], adopt_existing?}`; 202, the work goes on by itself."""
        no_dry_run(request)
        zone = _zone(request, pk)
        data = requests.only(request, ("records", "adopt_existing")) if request.data else {}
        services.repair(
            actor=requests.actor_of(request),
            zone_id=zone.pk,
            keys=_keys(data.get("records")),
            adopt_existing=_flag(data.get("adopt_existing")),
            reason=requests.reason(request),
        )
        return Response(status=202)


def _keys(given: object) -> list[tuple[str, str]]:
    """Names and types; none for all. Raises Invalid."""
    if given is None:
        return []
    if not isinstance(given, list) or not given:
        raise Invalid([FieldError("/records", "not_list", "Write records as a list of {name, type}, or leave it out.")])
    return [_key(row, index) for index, row in enumerate(given)]


def _key(row: object, index: int) -> tuple[str, str]:
    if isinstance(row, dict) and set(row) == {"name", "type"} and all(isinstance(word, str) for word in row.values()):
        return row["name"], row["type"]
    raise Invalid([FieldError(f"/records/{index}", "not_object", "Write a record as {name, type}, both as text.")])


def _flag(given: object) -> bool:
    if given is not None and not isinstance(given, bool):
        raise Invalid([FieldError("/adopt_existing", "not_boolean", "Write true or false.")])
    return bool(given)
