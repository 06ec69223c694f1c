"""Clients that limits banned, through the API and the page: shown to whose routes they are, and let in again."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from tests.apps.pushed import Env
from tests.apps.test_client_bans import ban, customer, env
from tests.interfaces.api.test_api_objects import Api, assert_problem
from tests.interfaces.people import client_of

__all__ = ["customer", "env"]


@pytest.fixture
def api(customer: Actor) -> Api:
    """Of the customer."""
    return Api(customer)


def test_a_customer_reads_and_lifts_bans_of_its_routes(env: Env, api: Api) -> None:
    ban(env, "home", "shop")
    (found,) = (answer := api("GET", "client-bans").json())["bans"]
    assert (answer["more"], answer["unknown_nodes"]) == (False, 0)
    assert found["client"] == "203.0.113.9"
    assert (found["account"], found["policy"], found["routes"], found["nodes"]) == ("acme", "", ["shop"], [])
    sent = {"region": found["region"], "ban": found["id"]}
    assert api("POST", "client-bans/lift", sent).json() == {"client": "203.0.113.9"}
    assert api("GET", "client-bans").json()["bans"] == []
    assert_problem(api("POST", "client-bans/lift", sent | {"ban": "600-2001:db8::1"}), 404)
    errors = assert_problem(api("POST", "client-bans/lift", {}), 422)["errors"]
    assert {each["pointer"] for each in errors} == {"/region", "/ban"}


def test_the_page_shows_bans_and_what_is_unknown_and_lifts(env: Env, customer: Actor) -> None:
    ban(env, "home", "shop")
    env.memory[1].unreachable = True
    client = client_of(customer)
    page = client.get("/client-bans").content.decode()
    assert "203.0.113.9" in page
    assert "Unknown for 1 node without an answer." in page
    assert "home" not in page
    assert "answer: n2" not in page
    of_operator = client_of(env.operator).get("/client-bans").content.decode()
    assert "policy strict" in of_operator
    assert "Unknown for 1 node without an answer: n2." in of_operator
    env.memory[1].unreachable = False
    (found,) = client.get("/client-bans").context["bans"].found
    answer = client.post("/client-bans/lift", {"region": "here", "ban": found.id}, follow=True)
    assert "203.0.113.9 is no longer banned." in answer.content.decode()
    assert "No limit bans a client now." in answer.content.decode()
    answer = client.post("/client-bans/lift", {"region": "here", "ban": "x"}, follow=True)
    assert "Fill in ban" in answer.content.decode()
