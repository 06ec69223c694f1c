"""In which private networks a fleet's servers may be, by its operator's policy, when written and compiled."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.compile import compile_snapshot
from apps.core.errors import Invalid
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.reading.describing import describe
from apps.definitions.services import save_object
from apps.fleet.models import Fleet
from tests.apps.test_own_addresses import save

pytestmark = pytest.mark.django_db
REGION = "us-central1"


def allow(operator: Actor, *networks: str) -> Fleet:
    """The policy of the one fleet of the region."""
    fleet = Fleet.objects.get(region__name=REGION)
    save_object(actor=operator, kind="Fleet", name=fleet.name, spec=describe(fleet) | {"private_networks": networks})
    return Fleet.objects.get(pk=fleet.pk)


@pytest.mark.parametrize("address", ["10.9.0.5", "192.168.0.1", "100.64.0.1", "fd00::1"])
def test_a_private_address_outside_of_the_policy_is_refused_with_the_field(
    tutorial_env: Actor, acme: Actor, address: str
) -> None:
    save(acme, address, name="before")
    allow(tutorial_env, "10.1.0.0/16", "fd01::/16")
    with pytest.raises(Invalid) as caught:
        save(acme, address)
    (field_error,) = caught.value.field_errors
    assert (field_error.pointer, field_error.code) == ("/spec/backends/0/servers/0/address", "address_refused")
    assert "private_networks" in field_error.detail


@pytest.mark.parametrize("address", ["10.1.0.5", "fd01::1", "203.0.113.9", "2001:db8::1", "shop.internal"])
def test_what_the_policy_allows_what_is_public_and_names_are_stored(
    tutorial_env: Actor, acme: Actor, address: str
) -> None:
    allow(tutorial_env, "10.1.0.0/16", "fd01::/16")
    save(acme, address)


def test_one_fleet_of_a_region_that_refuses_is_enough(tutorial_env: Actor, acme: Actor) -> None:
    spec = {"region": REGION, "private_networks": [], "local_development": True}
    save_object(actor=tutorial_env, kind="Fleet", name="strict", spec=spec)
    with pytest.raises(Invalid):
        save(acme, "10.1.0.5")


def test_a_server_that_a_later_policy_refuses_is_left_out_and_named(tutorial_env: Actor, acme: Actor) -> None:
    save(acme, "10.9.0.5")
    assert not compile_snapshot(snapshot_of(allow(tutorial_env, "10.9.0.0/16"))).left_out
    found = compile_snapshot(snapshot_of(allow(tutorial_env))).left_out
    assert {("self", "address_refused")} <= {(finding.label.rpartition("/")[2], finding.code) for finding in found}


@pytest.mark.parametrize(
    ("networks", "code"),
    [
        (["203.0.113.0/24"], "not_private"), (["0.0.0.0/0"], "not_private"), (["10.0.0.0/7"], "not_private"),
        (["10.0.0.1/8"], "network_spelling"), (["10.0.0.0"], "network_spelling"), (["10.0.0"], "network"),
        (["10.0.0.0/8", "10.0.0.0/8"], "twice"),
        ("10.0.0.0/8", "not_list"), ([f"10.{number}.0.0/16" for number in range(65)], "too_many"),
    ],
)  # fmt: skip
def test_a_policy_that_is_none_is_refused_with_its_pointer(tutorial_env: Actor, networks: Any, code: str) -> None:
    spec = {"region": REGION, "private_networks": networks}
    with pytest.raises(Invalid) as caught:
        save_object(actor=tutorial_env, kind="Fleet", name="other", spec=spec)
    assert [
        (field_error.pointer.rpartition("/private_networks")[0], field_error.code)
        for field_error in caught.value.field_errors
    ] == [("/spec", code)]
