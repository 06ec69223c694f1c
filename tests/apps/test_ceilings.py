"""An account's share of a node is a quota, in force on every node that serves the account."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import AccountShare
from apps.compiler.targets.haproxy.overflow.ceilings import CEILINGS_MAP
from apps.core.errors import Invalid
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Pool
from apps.definitions.services import save_object
from apps.fleet.models import Fleet

pytestmark = pytest.mark.django_db


@pytest.fixture
def us(tutorial_env: Actor) -> Fleet:
    """A fleet that serves acme."""
    return Fleet.objects.get(name="us-central1")


def shares(fleet: Fleet) -> dict[str, AccountShare]:
    """Account → what it may have of each of the fleet's nodes."""
    return {share.account: share for share in snapshot_of(fleet).shares}


def give(operator: Actor, **quotas: int) -> None:
    """An operator writes quotas."""
    spec = {"title": "Acme", "quotas": quotas}
    save_object(actor=operator, kind="Account", name="acme", spec=spec)


def test_a_customer_has_a_quarter_of_a_node_unless_an_operator_says_otherwise(us: Fleet, tutorial_env: Actor) -> None:
    assert shares(us)["acme"].percent == 25
    assert shares(us)["acme"].rps == 5000
    before = Fleet.objects.get(pk=us.pk).desired_generation
    give(tutorial_env, node_share_percent=60, node_rps=40_000)
    assert shares(us)["acme"].percent == 60
    assert shares(us)["acme"].rps == 40_000
    assert Fleet.objects.get(pk=us.pk).desired_generation > before


def test_pools_of_operators_have_no_ceiling(us: Fleet) -> None:
    Pool.objects.filter(account__name="acme").update(account=Account.objects.get(kind="operator"))
    assert "acme" not in shares(us)
    assert not set(Account.objects.filter(kind="operator").values_list("name", flat=True)) & shares(us).keys()


@pytest.mark.parametrize(
    ("quota", "value", "allowed"),
    [
        ("node_share_percent", 0, "from 1 to 100"),
        ("node_share_percent", 101, "from 1 to 100"),
        ("node_rps", 0, "from 1 to 1000000"),
        ("node_rps", 1_000_001, "from 1 to 1000000"),
    ],
)
def test_what_an_account_may_have_of_a_node_has_bounds(
    us: Fleet, tutorial_env: Actor, quota: str, value: int, allowed: str
) -> None:
    with pytest.raises(Invalid) as caught:
        give(tutorial_env, **{quota: value})
    (field_error,) = caught.value.field_errors
    assert field_error.pointer == f"/spec/quotas/{quota}"
    assert allowed in field_error.detail


@pytest.mark.parametrize("quotas", [{"node_share_percent": 60}, {"node_rps": 100}, {"node_share_percent": 100}])
def test_another_share_is_a_change_of_a_map_alone(us: Fleet, tutorial_env: Actor, quotas: dict[str, int]) -> None:
    before = compile_snapshot(snapshot_of(us)).output.files
    give(tutorial_env, **quotas)
    after = compile_snapshot(snapshot_of(us)).output.files
    changed = {path for path in after if path != "manifest.json" and before.get(path) != after[path]}
    assert changed == {CEILINGS_MAP}
