"""What nodes refuse in any fleet stands on one page and in one list; one of them is tried again by itself."""

from __future__ import annotations

import pytest

from apps.accounts.models import Account
from apps.rollouts.models import Quarantine
from tests.apps.pushed import Env, add_route, put_env
from tests.apps.test_rollouts_quarantine import refuses, set_refusals
from tests.conftest import actor_of
from tests.interfaces.api.test_api_objects import Api, assert_problem
from tests.interfaces.api.test_api_waiting import PUSHED
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def poisoned(db: None) -> Env:
    """The nodes refuse a pool and a route."""
    env = put_env(PUSHED)
    set_refusals(env, refuses("roundrobin", "/poison", names=True))
    env.change_pool("blue", "roundrobin")
    add_route(env.operator, "bad", "/poison")
    env.reconcile()
    return env


def labels() -> set[str]:
    return set(Quarantine.objects.values_list("label", flat=True))


def test_the_page_names_each_with_the_words_of_the_node_and_tries_one_again(poisoned: Env) -> None:
    client = client_of(poisoned.operator)
    assert "Quarantine: 2" in client.get("/fleets").content.decode()
    page = client.get("/quarantine").content.decode()
    for words in ("operator/blue", "operator/bad", "unknown keyword &#x27;roundrobin&#x27;", "Retry"):
        assert words in page
    row = Quarantine.objects.get(label="operator/blue")
    assert f'href="/pools/{row.part_of.removeprefix("pool-")}"' in page
    client.post(f"/quarantine/{row.pk}/try-again")
    assert labels() == {"operator/bad"}
    poisoned.reconcile()
    assert labels() == {"operator/blue", "operator/bad"}  # refused again
    set_refusals(poisoned, refuses("/poison", names=True))
    client.post(f"/quarantine/{Quarantine.objects.get(label='operator/blue').pk}/try-again")
    poisoned.reconcile()
    assert labels() == {"operator/bad"}
    assert all(b"balance roundrobin" in node.files["haproxy.cfg"] for node in poisoned.memory)


def test_an_empty_quarantine_says_so(db: None) -> None:
    env = put_env(PUSHED)
    assert "Quarantine is empty" in client_of(env.operator).get("/quarantine").content.decode()
    assert "Quarantine:" not in client_of(env.operator).get("/fleets").content.decode()


def test_the_list_of_the_api_is_everybodys_own_and_operators_try_again(poisoned: Env) -> None:
    house, acme = Api(poisoned.operator), Api(actor_of("acme", Account.Kind.CUSTOMER))
    found = {each["object"]: each for each in house("GET", "quarantine").json()["items"]}
    assert {name: (each["kind"], each["fleet"]) for name, each in found.items()} == {
        "operator/blue": ("Pool", "here"),
        "operator/bad": ("Route", "here"),
    }
    assert found["operator/blue"]["message"] == "HAProxy rejects this: unknown keyword 'roundrobin'."
    pk = found["operator/blue"]["id"]
    assert acme("GET", "quarantine").json()["items"] == []
    assert_problem(acme("POST", f"quarantine/{pk}/try-again"), 404)
    Quarantine.objects.filter(pk=pk).update(label="acme/blue")
    assert [each["object"] for each in acme("GET", "quarantine").json()["items"]] == ["acme/blue"]
    assert_problem(acme("POST", f"quarantine/{pk}/try-again"), 403)
    assert house("POST", f"quarantine/{pk}/try-again").status_code == 202
    assert labels() == {"operator/bad"}
