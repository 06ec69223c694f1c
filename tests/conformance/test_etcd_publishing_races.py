"""Definitions in a real etcd whatever dies in the middle, and whoever publishes at the same time."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.concurrency import leases
from apps.definitions.server_sources.etcd import client
from apps.definitions.server_sources.etcd.client import Etcd, Transaction
from apps.definitions.server_sources.watched import Failed
from apps.definitions.services import delete_object
from apps.exporting.models import Publication
from apps.exporting.publishing import services
from apps.exporting.publishing.planning import FENCE
from tests.conformance.publishing_env import (
    AT,
    LIST,
    acme,
    allow,
    etcd,
    give_up,
    is_whole,
    kept,
    look,
    networks,
    read_as_documented,
    said,
    save_list,
    sink,
)
from tests.etcd import RealEtcd, real_etcd
from tests.waiting import until

__all__ = ["acme", "allow", "etcd", "sink"]
pytestmark = [
    pytest.mark.long,
    pytest.mark.e2e,
    pytest.mark.django_db,
    pytest.mark.slow(reason="a real etcd starts, and is started again after it was killed"),
    pytest.mark.skipif(shutil.which("etcd") is None, reason="NOT CHECKED: there is no program etcd"),
]


class Killed(BaseException):
    """As kill -9: nothing after it happens, also no error is noted."""


def kill_at(monkeypatch: pytest.MonkeyPatch, number: int, *, after: bool) -> None:
    """The worker dies before or after its transaction of this number was written."""
    seen = 0

    def dying(etcd: Etcd, wanted: Transaction) -> int | None:
        nonlocal seen
        seen += 1
        if seen == number and not after:
            raise Killed
        revision = client.commit(etcd, wanted)
        if seen == number:
            raise Killed
        return revision

    monkeypatch.setattr(services, "commit", dying)


def die_and_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Killed):
        look()
    monkeypatch.setattr(services, "commit", client.commit)
    Publication.objects.update(claimed_until=None)


@pytest.mark.parametrize("after", [False, True])
def test_a_worker_that_dies_leaves_what_the_next_one_knows(
    sink: RealEtcd, acme: Actor, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """What is there is what the dead one wrote, which is no more what is wanted."""
    save_list(acme, "192.0.2.0/24")
    look()
    save_list(acme, "198.51.100.0/24")
    kill_at(monkeypatch, 1, after=after)
    die_and_go_on(monkeypatch)
    assert networks(sink) == ["198.51.100.0/24" if after else "192.0.2.0/24"]
    save_list(acme, "203.0.113.0/24")
    row = look()
    assert (row.conflicts, row.error, networks(sink)) == ([], "", ["203.0.113.0/24"])
    assert said(sink)["revision"] == (3 if after else 2)


@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.exhaustive), 3])
def test_a_set_of_several_transactions_is_gone_on_with_and_readers_can_tell(
    sink: RealEtcd, acme: Actor, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr("apps.exporting.publishing.planning.MOST_WRITES", 2)
    look()
    before = read_as_documented(sink)
    for each in range(5):
        save_list(acme, "192.0.2.0/24", name=f"list-{each}")
    kill_at(monkeypatch, number, after=True)
    die_and_go_on(monkeypatch)
    lists = [f"objects/NetworkList/list-{each}" for each in range(5)] if number == 3 else []
    assert read_as_documented(sink) == sorted([*before, *lists])
    assert is_whole(sink) == (number == 3)
    assert ("publishing" in kept(sink)) == (number < 3)
    delete_object(actor=acme, kind="NetworkList", name="list-0")
    row = look()
    assert (row.conflicts, row.error) == ([], "")
    assert [key for key in kept(sink) if "NetworkList" in key] == [f"objects/NetworkList/list-{n}" for n in range(1, 5)]
    assert is_whole(sink)


def test_an_etcd_that_is_away_is_tried_again_and_no_change_is_lost(sink: RealEtcd, acme: Actor) -> None:
    save_list(acme, "192.0.2.0/24")
    look()
    sink.kill(0)
    save_list(acme, "198.51.100.0/24")
    row = look()
    assert (row.error, row.failures, row.revision) == ("etcd does not answer.", 1, 1)
    assert row.next_at is not None
    assert row.next_at > now()
    assert look().failures == 2
    sink.start(0)
    sink.wait()
    row = look()
    assert (row.error, row.failures, networks(sink)) == ("", 0, ["198.51.100.0/24"])


def test_a_database_that_is_put_back_takes_nothing_back_by_itself(sink: RealEtcd, acme: Actor, operator: Actor) -> None:
    save_list(acme, "192.0.2.0/24")
    earlier = look()
    save_list(acme, "198.51.100.0/24")
    assert look().revision == 2
    earlier.save()
    save_list(acme, "192.0.2.0/24")  # the definition is as it was, too
    row = look()
    assert [each["key"] for each in row.conflicts] == [LIST, "revision"]
    assert networks(sink) == ["198.51.100.0/24"]
    give_up(operator, row)
    row = look()
    assert (row.conflicts, row.revision, networks(sink)) == ([], 3, ["192.0.2.0/24"])


@pytest.mark.exhaustive
def test_of_three_members_one_may_die_at_any_time(tmp_path: Path, acme: Actor, allow: Callable[..., None]) -> None:
    with real_etcd(tmp_path, members=3) as cluster:
        allow(cluster.etcd, {AT: "acme"})
        for number in range(3):
            save_list(acme, f"192.0.{number}.0/24")
            cluster.kill(number)
            until(lambda: (row := look()).error == "" and not row.conflicts, 60)
            assert networks(cluster) == [f"192.0.{number}.0/24"]
            assert is_whole(cluster)
            cluster.start(number)
            time.sleep(3)  # until it follows its leader again


def test_an_answer_that_is_lost_is_no_conflict_and_a_late_write_comes_to_nothing(
    sink: RealEtcd, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is taken back meanwhile, so that nothing seems to be left to write."""
    save_list(acme, "192.0.2.0/24")
    look()
    late: list[Transaction] = []

    def lost(_etcd: Etcd, wanted: Transaction) -> int | None:
        late.append(wanted)
        raise Failed("etcd does not answer.")

    monkeypatch.setattr(services, "commit", lost)
    save_list(acme, "198.51.100.0/24")
    assert look().error == "etcd does not answer."
    monkeypatch.setattr(services, "commit", client.commit)
    save_list(acme, "192.0.2.0/24")
    assert look().error == ""
    assert client.commit(sink.etcd, late[0]) is None
    assert networks(sink) == ["192.0.2.0/24"]


def interrupted(monkeypatch: pytest.MonkeyPatch, number: int, meanwhile: Callable[[], object]) -> None:
    """Something else happens just before the transaction of this number is sent."""
    seen = 0

    def slow(etcd: Etcd, wanted: Transaction) -> int | None:
        nonlocal seen
        seen += 1
        if seen == number:
            monkeypatch.setattr(services, "commit", client.commit)
            meanwhile()
        return client.commit(etcd, wanted)

    monkeypatch.setattr(services, "commit", slow)


def another_publishes(acme: Actor) -> Callable[[], None]:
    """A worker that took over, as the lease of the slow one had ended, publishes a newer change to its end."""

    def publish() -> None:
        save_list(acme, "203.0.113.0/24")
        Publication.objects.update(claimed_until=None)
        assert services.publish(Publication.objects.get().pk)
        assert Publication.objects.get().error == ""

    return publish


@pytest.mark.parametrize("at_once", [126, pytest.param(2, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("compared", [True, False])
def test_of_two_that_publish_at_once_the_slow_one_overwrites_nothing(
    sink: RealEtcd, acme: Actor, monkeypatch: pytest.MonkeyPatch, at_once: int, compared: bool
) -> None:
    """Without the comparison, as the control shows, the newer change is lost."""
    monkeypatch.setattr("apps.exporting.publishing.planning.MOST_WRITES", at_once)
    monkeypatch.setattr(leases.Lease, "renew", lambda _: None)  # it was renewed just before the worker was held up
    look()
    for each in range(3):
        save_list(acme, "192.0.2.0/24", name=f"list-{each}")
    save_list(acme, "198.51.100.0/24")
    if not compared:
        sent = client.commit
        monkeypatch.setattr(client, "commit", lambda etcd, each: sent(etcd, Transaction({}, each.puts, each.deletes)))
    interrupted(monkeypatch, 1 if at_once > 2 else 2, another_publishes(acme))
    look()
    assert (networks(sink) == ["203.0.113.0/24"]) == compared
    if compared:
        row = look()
        assert (row.conflicts, row.error, networks(sink)) == ([], "", ["203.0.113.0/24"])
        assert is_whole(sink)


@pytest.mark.parametrize("fenced", [True, False])
def test_a_slow_worker_stops_where_another_one_has_begun(
    sink: RealEtcd, acme: Actor, monkeypatch: pytest.MonkeyPatch, fenced: bool
) -> None:
    """Without comparing `publishing`, as the control shows, a mixture of both is called whole."""
    monkeypatch.setattr("apps.exporting.publishing.planning.MOST_WRITES", 2)
    monkeypatch.setattr(leases.Lease, "renew", lambda _: None)
    look()
    for each in range(4):
        save_list(acme, "192.0.2.0/24", name=f"list-{each}")

    def another_begins() -> None:
        for each in range(2):
            save_list(acme, "203.0.113.0/24", name=f"list-{each}")
        Publication.objects.update(claimed_until=None)
        kill_at(monkeypatch, 1, after=True)
        with pytest.raises(Killed):
            services.publish(Publication.objects.get().pk)
        monkeypatch.setattr(services, "commit", client.commit)

    if not fenced:
        sent, fence = client.commit, AT + FENCE

        def unfenced(etcd: Etcd, wanted: Transaction) -> int | None:
            as_read = {key: revision for key, revision in wanted.as_read.items() if key != fence}
            return sent(etcd, Transaction(as_read, wanted.puts, wanted.deletes))

        monkeypatch.setattr(client, "commit", unfenced)
    interrupted(monkeypatch, 2, another_begins)
    look()
    assert is_whole(sink) != fenced
    assert (FENCE in kept(sink)) == fenced
    row = look()
    assert (row.conflicts, row.error, is_whole(sink)) == ([], "", True)


def test_a_key_that_changes_between_reading_and_writing_is_a_conflict(
    sink: RealEtcd, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_list(acme, "192.0.2.0/24")
    look()
    save_list(acme, "198.51.100.0/24")
    interrupted(monkeypatch, 1, lambda: sink.put(AT + LIST, "theirs"))
    assert [each["key"] for each in look().conflicts] == [LIST]
    assert kept(sink)[LIST].value == "theirs"
