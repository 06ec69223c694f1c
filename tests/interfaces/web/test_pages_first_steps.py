"""An operator's first steps: each turns green from what is there and leads back to them; the example comes and goes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname, Membership
from apps.core.clock import now
from apps.definitions.models import LoadBalancer, Pool, Route
from apps.definitions.services import save_object
from apps.fleet.models import Fleet, Node, Region
from apps.observe.models import NodeReport, Sample
from tests.conftest import actor_of
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> Actor:
    return actor_of("operator", Account.Kind.OPERATOR)


@pytest.fixture
def client(operator: Actor) -> Client:
    return client_of(operator)


def steps_of(client: Client) -> list[str]:
    """The state of each step on the first page: d(one), n(ow) or -."""
    steps = client.get("/").context["steps"]
    return [each.state[:1] or "-" for each in steps]


def now_of(client: Client) -> tuple[str, str]:
    found = next(each for each in client.get("/").context["steps"] if each.state == "now")
    return found.title, found.url


def send(client: Client, **fields: str) -> None:
    """Send the form that the next step leads to; it leads back to the steps."""
    answer = client.post(now_of(client)[1], fields)
    assert answer.status_code == 302, answer.content.decode()
    assert answer["Location"] == "/"


def test_each_form_leads_back_and_turns_its_step_green(client: Client) -> None:
    assert "".join(steps_of(client)) == "n-------"
    send(client, **{"/name": "west", "/spec/title": "West"})
    send(client, **{"/name": "edge", "/spec/region": "west"})
    assert now_of(client)[0] == "Enrol a node"
    save_object(actor=actor_of("operator", Account.Kind.OPERATOR), kind="Node", name="edge-1", spec=NODE)
    assert now_of(client) == ("Enrol a node", "/fleets")
    NodeReport.objects.update_or_create(node=Node.objects.get(), defaults={"seen_at": now(), "last_contact_error": ""})
    assert "".join(steps_of(client)) == "dddn----"
    send(client, **{"/name": "front", "/spec/fleets": "edge"})
    assert now_of(client)[0] == "Open a port"


def built(operator: Actor) -> None:
    """All but a request."""
    action = {"fixed_response": {"status": 200, "body": "x"}}
    spec = {"load_balancer": "front", "hostname": "www.example.org", "path": "/", "action": action}
    front = {"fleets": ["edge"], "listeners": [{"name": "web", "protocol": "http", "port": 8081}]}
    save_object(actor=operator, kind="Region", name="west", spec={"title": "West"})
    save_object(actor=operator, kind="Fleet", name="edge", spec={"region": "west"})
    save_object(actor=operator, kind="Node", name="edge-1", spec=NODE)
    NodeReport.objects.update_or_create(node=Node.objects.get(), defaults={"seen_at": now(), "last_contact_error": ""})
    save_object(actor=operator, kind="LoadBalancer", name="front", spec=front)
    save_object(actor=operator, kind="Route", name="home", spec=spec)


def served(ago: timedelta) -> None:
    """A request was served so long ago."""
    at = now() - ago
    Sample.objects.create(at=at, resolution=10, node=Node.objects.get(), kind="frontend", object_id="lst-1", requests=1)


def test_the_last_step_has_the_command_and_turns_green_by_the_first_request(client: Client, operator: Actor) -> None:
    built(operator)
    assert "".join(steps_of(client)) == "dddddddn"
    page = client.get("/?partial=now").content.decode()
    assert "curl -i -H &#x27;Host: www.example.org&#x27; http://192.0.2.1:8081/" in page
    served(timedelta(seconds=10))
    assert "".join(steps_of(client)) == "dddddddd"
    assert "/requests?account=operator" in client.get("/").content.decode()


def test_the_steps_are_gone_some_minutes_after_the_first_request(client: Client, operator: Actor) -> None:
    built(operator)
    served(timedelta(minutes=11))
    assert steps_of(client) == []


def test_a_silent_node_is_no_step_done(client: Client, operator: Actor) -> None:
    built(operator)
    NodeReport.objects.update(last_contact_error="Connection refused.")
    assert now_of(client) == ("Enrol a node", "/fleets")


def test_an_installation_that_has_stacks_only_is_sent_to_no_fleet(client: Client, operator: Actor) -> None:
    save_object(actor=operator, kind="Region", name="west", spec={"title": "West"})
    account = {"cloud": "aws", "credentials": "env:PROD"}
    save_object(actor=operator, kind="CloudAccount", name="prod", spec=account)
    assert len(steps_of(client)) == 8
    stack = {"cloud_account": "prod", "cloud_region": "eu-central-1", "region": "west"}
    save_object(actor=operator, kind="Stack", name="aws", spec=stack)
    assert steps_of(client) == []


KINDS = (Region, Fleet, LoadBalancer, Pool, Route, Hostname)


def test_the_example_comes_and_goes_with_one_click_each(client: Client) -> None:
    assert "Load example" in client.get("/").content.decode()
    assert client.post("/example/load").status_code == 302
    page = client.get("/").content.decode()
    assert "The example is loaded" in page
    assert "Remove example" in page
    assert [kind.objects.count() for kind in KINDS] == [2, 2, 1, 2, 2, 1]
    assert "".join(steps_of(client)) == "n-------", "the example is nobody's work"
    client.post("/example/remove")
    assert [kind.objects.count() for kind in KINDS] == [0] * 6
    assert "Load example" in client.get("/").content.decode()


def test_removing_the_example_leaves_everything_else(client: Client, operator: Actor) -> None:
    built(operator)
    client.post("/example/load")
    client.post("/example/remove")
    assert [kind.objects.count() for kind in KINDS] == [1, 1, 1, 0, 1, 1]


def test_the_example_stays_whole_where_somebody_uses_a_part_of_it(client: Client, operator: Actor) -> None:
    client.post("/example/load")
    save_object(actor=operator, kind="Fleet", name="own", spec={"region": "example-us"})
    page = client.post("/example/remove", follow=True).content.decode()
    assert "The example stays: your own objects use it." in page
    assert "own" in page
    assert [kind.objects.count() for kind in KINDS] == [2, 3, 1, 2, 2, 1]


def test_viewers_are_offered_no_example(operator: Actor) -> None:
    viewer = client_of(operator, Membership.Role.VIEWER)
    assert "Load example" not in viewer.get("/").content.decode()
    assert viewer.post("/example/load").status_code == 403


NODE = {"fleet": "edge", "url": "memory://edge-1", "address": "192.0.2.1"}
