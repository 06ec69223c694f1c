"""The trace of a request is a page that can be sent on as a link."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from apps.definitions.models import Route
from tests.apps.test_network_lists import follow, keep, let_in
from tests.interfaces.people import client_of


@pytest.fixture
def host(tutorial_env: Actor) -> str:
    """The host of acme's shop."""
    return Route.objects.select_related("hostname").get(account__name="acme", name="shop").hostname.name


def test_the_empty_form_asks_for_a_request(acme: Actor, host: str) -> None:
    page = client_of(acme).get("/routes/trace").content.decode()
    assert "Trace a request" in page
    assert 'id="answer"' not in page


def test_the_answer_names_the_route_and_where_it_is_served(acme: Actor, host: str) -> None:
    asked = {"host": host, "path": "/cart?x=1", "scheme": "http", "headers": "X-A: b\nX-C: d"}
    answer = client_of(acme).get("/routes/trace", asked)
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "goes to pool acme/shop by route acme/shop" in page
    assert "us-central1" in page


def test_who_is_let_in_is_decided_for_a_client_and_named_without_one(acme: Actor, operator: Actor, host: str) -> None:
    keep(acme, "offices", "192.0.2.0/24")
    follow(acme, allow=["offices"])
    asked = {"host": host, "path": "/", "scheme": "http"}

    def told(actor: Actor = acme, **more: str) -> str:
        return client_of(actor).get("/routes/trace", asked | more).content.decode()

    assert "may reject it before: <code>access</code>" in told()
    assert "may reject it before" not in told(client="192.0.2.7")
    kept_out = (
        "gets status 403 from route acme/shop, since no network list that is allowed has the client: acme/offices"
    )
    assert kept_out in told(client="198.51.100.7")
    keep(operator, "scanners", "192.0.2.7/32")
    let_in(operator, deny=["scanners"])
    assert "is disconnected" in told(client="192.0.2.7")
    assert "scanners" not in told(client="192.0.2.7")
    assert "since the network list operator/scanners denies the client" in told(operator, client="192.0.2.7")
    assert "goes to pool acme/shop" in told(client="192.0.2.8")


def test_a_host_of_others_is_told_like_one_that_nobody_has(globex: Actor, host: str) -> None:
    pages = [client_of(globex).get("/routes/trace", {"host": each}).content.decode() for each in (host, "x.example")]
    assert all("No route for this host" in page for page in pages)
    assert "acme" not in pages[0].replace(host, "")


@pytest.mark.parametrize("field", ["host", "path", "method", "scheme", "headers"])
def test_what_is_no_request_is_said_beside_its_field(acme: Actor, host: str, field: str) -> None:
    wrong = {"host": "a b", "path": "x y", "method": "GO", "scheme": "tcp", "headers": "no colon \x01"}
    answer = client_of(acme).get("/routes/trace", {"host": host, "path": "/"} | {field: wrong[field]})
    assert answer.status_code == 422
    assert 'class="error"' in answer.content.decode() or 'class="errorlist"' in answer.content.decode()
