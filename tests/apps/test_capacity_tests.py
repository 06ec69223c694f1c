"""What may be stored, by whom, and that every bound is a sentence at its field."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.capacity.models import Blackout
from apps.capacity.run.checking import checks
from apps.core.clock import now
from apps.core.errors import Conflict, Invalid
from apps.definitions import load_targets
from apps.definitions.models import CapacityTest
from apps.definitions.reading.describing import describe
from apps.definitions.services import delete_object, save_object

TARGET = {"pool": "shop", "region": "us-central1", "hostname": "shop.acme.example"}


def saved(actor: Actor, name: str = "nightly", **parts: Any) -> CapacityTest:
    """A test of acme's shop, with some parts of its own."""
    spec = {"target": TARGET | parts.pop("target", {})} | parts
    row: CapacityTest = save_object(actor=actor, kind="CapacityTest", name=name, account="acme", spec=spec)
    return row


def field_errors(actor: Actor, **parts: Any) -> dict[str, str]:
    """What is wrong with a test: pointer → code."""
    with pytest.raises(Invalid) as caught:
        saved(actor, **parts)
    return {field_error.pointer: field_error.code for field_error in caught.value.field_errors}


def test_a_test_is_stored_with_every_deerror_and_read_again(tutorial_env: Actor, acme: Actor) -> None:
    Hostname.objects.filter(name="shop.acme.example").update(verification="dns")
    row = saved(acme, guards={"max_rate": 40})
    document = describe(row)
    assert document["target"] == TARGET | {"path": "/", "server": ""}
    assert (document["load"]["kind"], document["guards"]["max_rate"]) == ("search", 40)
    again = save_object(actor=acme, kind="CapacityTest", name="nightly", spec=document)
    assert (again.pk, again.version) == (row.pk, 1)


@pytest.mark.parametrize(
    ("parts", "pointer", "code"),
    [
        ({"load": {"kind": "constant", "rate": 101}}, "/spec/load/rate", "guard"),
        ({"load": {"kind": "constant"}}, "/spec/load/rate", "missing"),
        ({"load": {"kind": "users", "users": 500}}, "/spec/load/users", "guard"),
        ({"load": {"kind": "ramp", "rate": 9, "to_rate": 5, "step": 1}}, "/spec/load/to_rate", "ramp"),
        ({"load": {"kind": "soak", "rate": 1, "duration_s": 900}}, "/spec/load/duration_s", "guard"),
        ({"load": {"users": 3}}, "/spec/load/users", "kind"),
        ({"load": {"protocol": "http2"}}, "/spec/load/protocol", "choice"),
        ({"load": {"method": "DELETE"}}, "/spec/load/method", "choice"),
        ({"objective": {"percentile": 50}}, "/spec/objective/percentile", "choice"),
        ({"policy": {"max_change": 0.21}}, "/spec/policy/max_change", "out_of_range"),
        ({"guards": {"max_rat": 4}}, "/spec/guards/max_rat", "unknown_field"),
        ({"target": {"region": "nowhere"}}, "/spec/target/region", "unknown"),
        ({"target": {"pool": "globex/api"}}, "/spec/target/pool", "unknown"),
        ({"target": {"server": "eu-vm-1"}}, "/spec/target/server", "unknown"),
        ({"target": {"hostname": "*.acme.example"}}, "/spec/target/hostname", "wildcard"),
        ({"target": {"hostname": "api.globex.example"}}, "/spec/target/hostname", "not_yours"),
        ({"target": {"hostname": "bank.example"}}, "/spec/target/hostname", "not_yours"),
        ({"target": {"path": "http://bank.example/"}}, "/spec/target/path", "path_start"),
    ],
)
def test_every_bound_is_an_error_at_its_field(
    tutorial_env: Actor, acme: Actor, parts: dict[str, Any], pointer: str, code: str
) -> None:
    Hostname.objects.filter(account=acme.account).update(verification="dns")
    assert field_errors(acme, **parts)[pointer] == code
    assert not CapacityTest.objects.filter(name="nightly").exists()


def test_a_name_that_is_not_verified_cannot_be_tested(tutorial_env: Actor, acme: Actor) -> None:
    Hostname.objects.filter(account=acme.account).update(verification="")
    assert field_errors(acme) == {"/spec/target/hostname": "not_yours"}
    Hostname.objects.filter(account=acme.account).update(verification="dns")
    assert saved(acme).hostname in load_targets.hostnames_to_load(acme.account)


def test_no_customer_has_more_tests_than_its_quota(tutorial_env: Actor, acme: Actor) -> None:
    Hostname.objects.filter(account=acme.account).update(verification="dns")
    acme.account.quotas = {"capacity_tests": 2}  # one is the tutorial's
    acme.account.save()
    saved(acme)
    assert field_errors(acme, name="second") == {"/name": "quota"}


def test_a_pool_with_a_test_is_not_deleted(tutorial_env: Actor, acme: Actor) -> None:
    Hostname.objects.filter(account=acme.account).update(verification="dns")
    saved(acme)
    with pytest.raises(Conflict, match="capacity test nightly"):
        delete_object(actor=acme, kind="Pool", name="shop")
    delete_object(actor=acme, kind="CapacityTest", name="nightly")
    assert not CapacityTest.objects.filter(name="nightly").exists()


@pytest.mark.parametrize(
    ("begins_s", "ends_s", "free"), [(-9, 9, False), (99, 999, False), (-99, 0, True), (120, 999, True)]
)
def test_a_run_that_would_meet_a_blackout_is_kept_back(
    tutorial_env: Actor, acme: Actor, begins_s: int, ends_s: int, free: bool
) -> None:
    Hostname.objects.filter(name="shop.acme.example").update(verification="dns")
    row, instant = saved(acme, guards={"max_duration_s": 120}), now()
    window = (instant + timedelta(seconds=begins_s), instant + timedelta(seconds=ends_s))
    Blackout.objects.create(starts_at=window[0], ends_at=window[1], reason="The sale", set_by="operator")
    assert {check.code: check.ok for check in checks(row, instant)}["blackout"] is free
