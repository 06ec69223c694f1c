"""Incidents by programs: opened, told on, listed, deleted; what is wrong is said at its field."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.shapes.base.words import instant_text
from apps.status.models import Incident
from tests.apps.status_env import make_page
from tests.interfaces.api.test_api_objects import Api, assert_problem

SPEC: dict[str, Any] = {"title": "Payments fail", "text": "We look into it.", "components": ["Checkout"]}


def answer(api: Api, method: str, url: str, body: Any = None, status: int = 200) -> Any:
    """What a call answers, which must have this status."""
    found = api(method, url, body)
    assert found.status_code == status, found.content
    return found.json() if found.content else None


def test_a_program_opens_tells_lists_and_deletes(tutorial_env: Actor, acme: Actor, globex: Actor) -> None:
    make_page(acme)
    ours, theirs = Api(acme), Api(globex)
    made = answer(ours, "POST", "incidents", {"page": "acme", "spec": SPEC}, 201)
    assert (made["status"], made["impacts"], made["number"]) == ("investigating", {"Checkout": "degraded"}, 1)
    one, told = (
        f"incidents/{made['id']}",
        {"spec": {"text": "Found.", "status": "identified", "impact": "major_outage"}},
    )
    after = answer(ours, "POST", f"{one}/updates", told, 201)
    assert (after["status"], after["impacts"]) == ("identified", {"Checkout": "major_outage"})
    assert [each["status"] for each in after["updates"]] == ["Identified", "Investigating"]
    assert [each["id"] for each in answer(ours, "GET", "incidents?account=acme")["items"]] == [made["id"]]
    assert answer(ours, "GET", "incidents?account=globex")["items"] == []
    assert answer(theirs, "GET", "incidents")["items"] == []
    for method, url, body in (("GET", one, None), ("POST", f"{one}/updates", told), ("DELETE", one, None)):
        assert_problem(theirs(method, url, body), 404)
    answer(ours, "DELETE", one, status=204)
    assert not Incident.objects.exists()


def test_maintenance_is_planned_goes_by_the_clock_and_is_over_once(tutorial_env: Actor, acme: Actor) -> None:
    make_page(acme)
    begin, end = (instant_text(now() + timedelta(hours=hours)) for hours in (1, 2))
    spec, api = SPEC | {"begins_at": begin, "ends_at": end}, Api(acme)
    made = answer(api, "POST", "incidents", {"page": "acme", "spec": spec}, 201)
    assert (made["status"], made["ends_at"], made["over_at"]) == ("scheduled", end, None)
    url, told = f"incidents/{made['id']}/updates", {"spec": {"text": "Not needed.", "status": "resolved"}}
    assert answer(api, "POST", url, told, 201)["status"] == "completed"
    assert_problem(api("POST", url, told), 409)


def test_what_is_wrong_is_said_at_its_field(tutorial_env: Actor, acme: Actor) -> None:
    make_page(acme)

    def pointers(api: Api, body: dict[str, Any]) -> list[str]:
        return [each["pointer"] for each in assert_problem(api("POST", "incidents", body), 422)["errors"]]

    ours, house = Api(acme), Api(tutorial_env)
    assert pointers(ours, {"page": "other", "spec": SPEC}) == ["/page"]
    assert pointers(ours, {"page": ["acme"], "spec": SPEC}) == ["/page"]
    assert pointers(ours, {"page": "acme", "spec": {}}) == ["/spec/title", "/spec/text"]
    assert pointers(ours, {"page": "acme", "spec": None}) == ["/spec"]
    assert pointers(house, {"page": "acme", "spec": SPEC}) == ["/page"]
    assert (
        answer(house, "POST", "incidents", {"page": "acme", "account": "acme", "spec": SPEC}, 201)["account"] == "acme"
    )
