"""Blackouts are set and ended by operators and read by everybody."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.capacity.models import Blackout
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
WINDOW = {"/starts_at": "2041-01-01T00:00", "/ends_at": "2041-01-02T00:00", "/reason": "The sale"}


@pytest.fixture
def people(operator: Actor, acme: Actor) -> dict[str, Client]:
    return {"operator": client_of(operator), "customer": client_of(acme)}


def test_an_operator_sets_a_blackout_and_ends_it_again(people: dict[str, Client]) -> None:
    assert people["operator"].post("/blackouts", WINDOW).status_code == 302
    row = Blackout.objects.get()
    assert (row.reason, row.starts_at.isoformat()) == ("The sale", "2041-01-01T00:00:00+00:00")
    page = people["operator"].get("/blackouts").content.decode()
    assert "The sale" in page
    assert "Upcoming" in page
    assert people["operator"].post(f"/blackouts/{row.pk}/end").status_code == 302
    assert not Blackout.objects.exists()
    assert list(Entry.objects.filter(object_kind="Blackout").values_list("action", flat=True)) == ["delete", "create"]


def test_a_wrong_blackout_is_refused_beside_its_field_and_kept(people: dict[str, Client]) -> None:
    for field, typed, said in (
        ("/ends_at", "2040-01-01T00:00", "Let the blackout end after its start"),
        ("/ends_at", "2051-01-01T00:00", "at most a year"),
        ("/reason", "", "This field is required"),
        ("/starts_at", "soon", "Enter a valid date/time"),
    ):
        answer = people["operator"].post("/blackouts", WINDOW | {field: typed})
        assert answer.status_code == 422
        assert said in answer.content.decode()
    assert not Blackout.objects.exists()


def test_customers_read_blackouts_and_cannot_set_or_end_them(people: dict[str, Client]) -> None:
    people["operator"].post("/blackouts", WINDOW)
    page = people["customer"].get("/blackouts").content.decode()
    assert "The sale" in page
    assert "New blackout" not in page
    assert people["customer"].post("/blackouts", WINDOW).status_code == 403
    assert people["customer"].post(f"/blackouts/{Blackout.objects.get().pk}/end").status_code == 403
    assert Blackout.objects.count() == 1
