"""Operators go back to a revision, let a fleet go on, and push again."""

from __future__ import annotations

from apps.fleet.models import Fleet
from apps.rollouts.models import FleetSync
from apps.rollouts.services import reconcile_fleet
from tests.interfaces.api.test_api_objects import Api, api, assert_problem, house

__all__ = ["api", "house"]


def test_an_operator_rolls_back_resumes_and_pushes_again(api: Api, house: Api) -> None:
    fleet = Fleet.objects.earliest("pk")
    reconcile_fleet(fleet_id=fleet.pk)
    revision = house("GET", "revisions").json()["items"][0]["id"]
    assert_problem(house("POST", f"revisions/{revision}/roll-back"), 422)
    assert_problem(api("POST", f"revisions/{revision}/roll-back", X_Change_Reason="x"), 404)
    begun = house("POST", f"revisions/{revision}/roll-back", X_Change_Reason="errors")
    assert (begun.status_code, begun.json()["reason"]) == (202, "errors")
    assert house("GET", begun["Location"].removeprefix("/api/v1/")).json()["id"] == begun.json()["id"]
    assert FleetSync.objects.get(fleet=fleet).held_at_id == revision
    assert house("POST", f"fleets/{fleet.name}/resume", X_Change_Reason="fixed").status_code == 202
    assert_problem(house("POST", f"fleets/{fleet.name}/resume"), 409)
    assert house("POST", f"fleets/{fleet.name}/push").status_code == 202


def test_customers_do_nothing_with_fleets(api: Api) -> None:
    name = Fleet.objects.earliest("pk").name
    for verb in ("push", "resume"):
        assert_problem(api("POST", f"fleets/{name}/{verb}"), 404)
        assert_problem(api("POST", f"fleets/nowhere/{verb}"), 404)
