"""Bans by hand through the API and the command line: one entry of a list, without the others being sent."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.core.errors import Invalid, NotFound
from apps.definitions.models import NetworkList
from apps.definitions.services import ban_network, lift_ban, save_object
from tests.interfaces.api.test_api_objects import Api, assert_problem

OTHER = {"network": "192.0.2.0/24", "reason": "scans us"}


@pytest.fixture
def bad(tutorial_env: Actor, acme: Actor) -> NetworkList:
    row: NetworkList = save_object(actor=acme, kind="NetworkList", name="bad", spec={"entries": [OTHER]})
    return row


def entries(row: NetworkList) -> list[Any]:
    row.refresh_from_db()
    return list(row.entries)


def test_an_address_is_the_network_of_it_alone(bad: NetworkList, acme: Actor) -> None:
    until = "2027-01-31T00:00:00Z"
    ban_network(actor=acme, list_id=bad.pk, network="198.51.100.7", expires_at=until, why="floods", reason="ticket 7")
    ban_network(actor=acme, list_id=bad.pk, network="2001:db8::7")
    assert entries(bad) == [
        OTHER,
        {"network": "198.51.100.7/32", "expires_at": until, "reason": "floods"},
        {"network": "2001:db8::7/128"},
    ]
    assert bad.version == 3
    assert bad.next_expiry is not None
    assert Entry.objects.filter(action="ban", reason="ticket 7").exists()


def test_who_is_banned_again_has_one_entry_and_nothing_is_written_twice(bad: NetworkList, acme: Actor) -> None:
    for _ in range(2):
        ban_network(actor=acme, list_id=bad.pk, network="192.0.2.0/24", why="floods")
    assert entries(bad) == [{"network": "192.0.2.0/24", "reason": "floods"}]
    assert bad.version == 2


def test_a_ban_is_lifted_once(bad: NetworkList, acme: Actor) -> None:
    lift_ban(actor=acme, list_id=bad.pk, network="192.0.2.0/24")
    assert entries(bad) == []
    with pytest.raises(NotFound):
        lift_ban(actor=acme, list_id=bad.pk, network="192.0.2.0/24")


def test_other_accounts_lists_are_nobodys(bad: NetworkList, globex: Actor) -> None:
    with pytest.raises(NotFound):
        ban_network(actor=globex, list_id=bad.pk, network="198.51.100.7")


@pytest.mark.parametrize("fields", [{"network": "x"}, {"network": 7}, {"network": "192.0.2.1", "expires_at": "soon"}])
def test_what_is_in_no_grammar_is_refused_by_its_field(bad: NetworkList, acme: Actor, fields: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        ban_network(actor=acme, list_id=bad.pk, **fields)
    assert refused.value.field_errors[0].pointer == f"/{list(fields)[-1]}"
    assert entries(bad) == [OTHER]


def test_programs_ban_and_lift_by_small_calls(bad: NetworkList, acme: Actor) -> None:
    api = Api(acme)
    done = api("POST", f"network-lists/{bad.pk}/ban", {"network": "198.51.100.7", "reason": "floods"})
    assert done.status_code == 200
    assert done["ETag"] == '"rev-2"'
    assert done.json()["spec"]["entries"][1] == {"network": "198.51.100.7/32", "reason": "floods"}
    assert api("POST", f"network-lists/{bad.pk}/lift", {"network": "198.51.100.7"}).status_code == 200
    assert entries(bad) == [OTHER]
    assert assert_problem(api("POST", f"network-lists/{bad.pk}/ban", {}), 422)["errors"][0]["pointer"] == "/network"
