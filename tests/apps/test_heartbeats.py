"""Servers that register themselves: they come, stay while they say so, and never all leave at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.definitions.models import Backend, Heartbeat, Pool, Server, ServerSource
from apps.definitions.server_sources import finding, heartbeats
from apps.definitions.server_sources.deciding import CONFIRMED
from apps.definitions.services import save_object

REGION = "us-central1"


@pytest.fixture
def pool(acme: Actor, tutorial_env: Actor) -> Pool:
    """One whose servers register themselves for thirty seconds."""
    spec = {"backends": [{"region": REGION, "servers_from": "heartbeat://30"}]}
    row: Pool = save_object(actor=acme, kind="Pool", name="shop-next", spec=spec)
    Server.objects.filter(backend__pool=row).delete()
    return row


def beat(actor: Actor, pool: Pool, number: int, **changed: Any) -> Heartbeat:
    """Server number so-and-so says that it is there."""
    server = {"address": f"192.0.2.{number}", "port": 8080, **changed}
    return heartbeats.beat(actor=actor, pool_id=pool.pk, region=REGION, name=f"web-{number}", server=server)


def found() -> list[str]:
    """The servers of the pool after its source was asked."""
    ServerSource.objects.update(next_at=now())
    assert finding.find_in_turns() == 1
    rows = Server.objects.filter(backend__pool__name="shop-next").order_by("name")
    return [f"{row.name} {row.address} {row.weight}" for row in rows]


def over(*numbers: int) -> None:
    """The leases of these servers have ended, while their source was asked all the time."""
    names = [f"web-{number}" for number in numbers]
    Heartbeat.objects.filter(name__in=names).update(until=now() - timedelta(seconds=1))


def test_a_server_that_registers_itself_gets_requests_until_its_lease_ends(acme: Actor, pool: Pool) -> None:
    for number in (1, 2, 3):
        row = beat(acme, pool, number, weight=10 * number)
    assert timedelta(seconds=28) < row.until - now() <= timedelta(seconds=30)
    assert found() == ["web-1 192.0.2.1 10", "web-2 192.0.2.2 20", "web-3 192.0.2.3 30"]
    over(1)
    assert found() == ["web-2 192.0.2.2 20", "web-3 192.0.2.3 30"]
    beat(acme, pool, 1)
    heartbeats.leave(actor=acme, pool_id=pool.pk, region=REGION, name="web-2")
    assert found() == ["web-1 192.0.2.1 100", "web-3 192.0.2.3 30"]


def test_renewing_a_lease_writes_nothing_else(acme: Actor, pool: Pool) -> None:
    beat(acme, pool, 1)
    found()
    version, until = Pool.objects.get(pk=pool.pk).version, Heartbeat.objects.get().until
    beat(acme, pool, 1)
    found()
    assert Heartbeat.objects.get().until > until
    assert Pool.objects.get(pk=pool.pk).version == version


def test_leases_that_all_end_never_empty_a_pool_and_half_of_them_must_stay_so_for_a_while(
    acme: Actor, pool: Pool
) -> None:
    for number in (1, 2, 3):
        beat(acme, pool, number)
    assert len(found()) == 3
    over(1, 2)
    assert [len(found()) for _ in range(CONFIRMED)] == [3] * (CONFIRMED - 1) + [1]
    over(3)
    assert [len(found()) for _ in range(CONFIRMED + 1)] == [1] * (CONFIRMED + 1)
    assert "lists no server" in ServerSource.objects.get().error


def test_a_console_that_was_away_ends_no_lease(acme: Actor, pool: Pool) -> None:
    for number in (1, 2, 3):
        beat(acme, pool, number)
    found()
    away = timedelta(minutes=10)
    ServerSource.objects.update(tried_at=now() - away)
    Heartbeat.objects.update(until=now() - away + timedelta(seconds=30))
    assert len(found()) == 3
    over(1)  # from here on somebody looks again
    assert len(found()) == 2


def pass_seconds(seconds: int) -> None:
    """Time passes, in which the source was asked until two seconds ago."""
    for row in Heartbeat.objects.all():
        Heartbeat.objects.filter(pk=row.pk).update(until=row.until - timedelta(seconds=seconds))
    ServerSource.objects.update(tried_at=now() - timedelta(seconds=2))


def lease_by_lease(pool: Pool, actor: Actor) -> int:
    """How many of eight servers are left half a minute after they beat last, no two of them at once."""
    for number in range(1, 9):
        beat(actor, pool, number)
    assert len(found()) == 8
    for number in range(1, 9):
        Heartbeat.objects.filter(name=f"web-{number}").update(until=now() + timedelta(seconds=3 * number))
    for _ in range(10):
        pass_seconds(3)
        left = len(found())
    return left


def test_servers_of_a_suspended_account_cannot_beat_and_go_on_serving(acme: Actor, operator: Actor, pool: Pool) -> None:
    spec = {"title": "Acme", "suspended": True}
    save_object(actor=operator, kind="Account", name="acme", spec=spec)
    assert lease_by_lease(pool, acme) == 8
    save_object(actor=operator, kind="Account", name="acme", spec=spec | {"suspended": False})
    pass_seconds(3)  # since the suspension ended they have a lease to beat again
    assert len(found()) == 8


def test_without_a_suspension_they_would_have_gone_one_by_one(acme: Actor, pool: Pool) -> None:
    assert lease_by_lease(pool, acme) < 3


def test_without_that_the_leases_would_have_ended(acme: Actor, pool: Pool) -> None:
    for number in (1, 2, 3):
        beat(acme, pool, number)
    found()
    Heartbeat.objects.filter(name="web-1").update(until=now() - timedelta(minutes=9))
    assert len(found()) == 2


def test_who_may_not_and_where_nobody_registers(acme: Actor, globex: Actor, pool: Pool) -> None:
    narrow = Actor("a server", acme.account, Membership.Role.EDITOR, scopes=frozenset({"servers:write"}))
    assert beat(narrow, pool, 1).name == "web-1"
    for actor, refusal in (
        (Actor("v", acme.account, Membership.Role.VIEWER), Forbidden),
        (Actor("t", acme.account, Membership.Role.EDITOR, scopes=frozenset({"pools:write"})), Forbidden),
        (globex, NotFound),
    ):
        with pytest.raises(refusal):
            beat(actor, pool, 2)
    other = Backend.objects.filter(servers_from="", account=acme.account).select_related("region").earliest("pk")
    with pytest.raises(Conflict, match="do not register themselves"):
        heartbeats.leave(actor=acme, pool_id=other.pool_id, region=other.region.name, name="web-1")


def test_a_place_is_taken_once_never_ours_and_there_are_only_so_many(
    acme: Actor, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat(acme, pool, 1)
    with pytest.raises(Conflict, match="web-1 has registered this address"):
        beat(acme, pool, 2, address="192.0.2.1")
    with pytest.raises(Invalid):
        beat(acme, pool, 2, address="169.254.169.254")
    with pytest.raises(Invalid):
        beat(acme, pool, 2, port=0)
    monkeypatch.setattr(heartbeats, "MOST", 1)
    with pytest.raises(Conflict, match="no more are taken"):
        beat(acme, pool, 2)
    beat(acme, pool, 1, weight=7)  # who is there may still move


def test_an_address_passes_to_another_name_once_the_lease_of_the_former_is_over(
    acme: Actor, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        beat(acme, pool, number)
    found()
    over(1)
    ServerSource.objects.update(tried_at=now() - timedelta(seconds=2))  # nobody has looked since
    with pytest.raises(Conflict, match="web-1 has registered this address"):
        beat(acme, pool, 4, address="192.0.2.1")
    found()
    beat(acme, pool, 4, address="192.0.2.1")
    assert found() == ["web-2 192.0.2.2 100", "web-3 192.0.2.3 100", "web-4 192.0.2.1 100"]
    over(2)
    found()
    monkeypatch.setattr(heartbeats, "MOST", 3)
    beat(acme, pool, 5)  # in the place of the one whose lease is over
    with pytest.raises(Conflict, match="no more are taken"):
        beat(acme, pool, 6)


def test_a_pool_with_another_source_forgets_who_registered(acme: Actor, pool: Pool) -> None:
    beat(acme, pool, 1)
    save_object(
        actor=acme,
        kind="Pool",
        name="shop-next",
        spec={"backends": [{"region": REGION, "servers_from": "dns://app.internal:80"}]},
    )
    assert not Heartbeat.objects.exists()
