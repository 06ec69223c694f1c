"""What acts at once is undone by the button beside the sentence that it is done, as the browser sends it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.definitions.models import Pool, Route, Schedule, Server
from apps.definitions.services import save_object
from apps.fleet.models import Region
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
UNDO = re.compile(r'<form method="post" action="([^"]+)">(?:(?!</form>).)*<button class="undo">', re.DOTALL)
FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


@pytest.fixture
def operator(tutorial_env: Actor) -> Client:
    return client_of(tutorial_env)


def undo(client: Client, answer: Any) -> str:
    """Press the button of the page that was shown; what the next page says."""
    button = UNDO.search(answer.content.decode())
    assert button, "no button to undo it"
    fields = [(unescape(name), unescape(value)) for name, value in FIELD.findall(button[0])]
    sent = {name: [value for other, value in fields if other == name] for name, _ in fields}
    return str(client.post(unescape(button[1]), sent, follow=True).content.decode())


def test_servers_that_were_drained_are_ready_again(operator: Client) -> None:
    pool = Pool.objects.get(name="shop")
    chosen = list(Server.objects.filter(backend__pool=pool).values_list("pk", flat=True)[:2])
    done = operator.post(f"/pools/{pool.pk}/servers", {"server": chosen, "do": "drain"}, follow=True)
    assert {row.state for row in Server.objects.filter(pk__in=chosen)} == {"drain"}
    page = undo(operator, done)
    assert {row.state for row in Server.objects.filter(pk__in=chosen)} == {"ready"}
    assert "<h1>shop</h1>" in page  # and somebody is where they were


def test_a_drained_region_serves_again(operator: Client) -> None:
    sent = {"do": "drain", "reason": "Maintenance"}
    undo(operator, operator.post("/regions/us-central1/drain", sent, follow=True))
    assert Region.objects.get(name="us-central1").drained is False


def test_a_deleted_route_is_there_again(operator: Client) -> None:
    route = Route.objects.get(name="checkout")
    sent = {"confirm": "checkout", "version": route.version}
    done = operator.post(f"/routes/{route.pk}/delete", sent, follow=True)
    assert not Route.objects.filter(name="checkout").exists()
    undo(operator, done)
    again = Route.objects.get(name="checkout")
    assert (again.hostname, again.path) == (route.hostname, route.path)


def test_what_moved_since_is_not_undone(operator: Client) -> None:
    pool = Pool.objects.get(name="shop")
    chosen = Server.objects.filter(backend__pool=pool).latest("pk").pk
    done = operator.post(f"/pools/{pool.pk}/servers", {"server": chosen, "do": "drain"}, follow=True)
    operator.post(f"/pools/{pool.pk}/servers", {"server": chosen, "do": "maintenance"})
    assert "has changed since. Nothing was reverted" in undo(operator, done)
    assert Server.objects.get(pk=chosen).state == "maintenance"


def test_undo_of_schedules_resumes_those_alone_that_it_paused(operator: Client, tutorial_env: Actor) -> None:
    spec = {"when": {"every_s": 3600}, "target": {"topic": {"topic": "beats"}}}
    rows: list[Schedule] = [
        save_object(actor=tutorial_env, kind="Schedule", name=name, spec=spec) for name in ("one", "two")
    ]
    operator.post(f"/schedules/{rows[0].pk}/pause", follow=True)
    sent = {"do": "pause", "schedule": [row.pk for row in rows]}
    undo(operator, operator.post("/schedules/bulk", sent, follow=True))
    assert [Schedule.objects.get(pk=row.pk).paused for row in rows] == [True, False]


def test_nothing_to_undo_where_nothing_changed(operator: Client) -> None:
    pool = Pool.objects.get(name="shop")
    done = operator.post(f"/pools/{pool.pk}/servers", {"server": [], "do": "drain"}, follow=True)
    assert 'class="undo"' not in done.content.decode()


def test_undo_goes_back_to_a_page_of_ours_alone(operator: Client) -> None:
    pool = Pool.objects.get(name="shop")
    chosen = Server.objects.filter(backend__pool=pool).latest("pk").pk
    done = operator.post(f"/pools/{pool.pk}/servers", {"server": chosen, "do": "drain"}, follow=True)
    button = UNDO.search(done.content.decode())
    assert button
    for away in ("https://elsewhere.example/", "//elsewhere.example/", "/\\elsewhere.example"):
        assert operator.post(button[1], {"back": away})["Location"].startswith("/change"), away
