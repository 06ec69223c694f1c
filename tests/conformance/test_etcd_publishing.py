"""Definitions as keys of a real etcd: published, changed, deleted, in the way, raced for, cut off, nobody else's."""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.audit import chain
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.concurrency import leases
from apps.core.errors import Conflict, Forbidden
from apps.definitions.models import NetworkList
from apps.definitions.server_sources.etcd import client
from apps.definitions.server_sources.etcd.client import Etcd, Kept, Transaction, read_kept
from apps.definitions.server_sources.watched import Failed
from apps.definitions.services import delete_object, save_object
from apps.exporting.models import Publication
from apps.exporting.publishing import objects, services, showing
from apps.exporting.publishing.planning import FENCE
from tests.etcd import RealEtcd, real_etcd
from tests.waiting import until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.django_db,
    pytest.mark.slow(reason="a real etcd starts, and is started again after it was killed"),
    pytest.mark.skipif(shutil.which("etcd") is None, reason="NOT CHECKED: there is no program etcd"),
]
AT = "/spillway/acme/"
LIST = "objects/NetworkList/office"


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[RealEtcd]:
    with real_etcd(tmp_path) as running:
        yield running


@pytest.fixture
def acme(acme: Actor, tutorial_env: Actor) -> Actor:
    return acme


@pytest.fixture
def allow(settings: Settings, tmp_path: Path) -> Callable[..., None]:
    """Write the operator's file: whose definitions go where."""

    def write(etcd: Etcd, publish: dict[str, Any]) -> None:
        written = tmp_path / "registries.json"
        written.write_text(json.dumps({"etcd": {"prod": {"urls": list(etcd.urls), "publish": publish}}}))
        settings.REGISTRIES = str(written)

    return write


@pytest.fixture
def sink(etcd: RealEtcd, acme: Actor, allow: Callable[..., None]) -> RealEtcd:
    """Definitions of acme are published."""
    allow(etcd.etcd, {AT: "acme"})
    return etcd


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def look() -> Publication:
    """As the sweep and a worker do, at once; how far it came."""
    Publication.objects.update(next_at=None)
    services.publish_in_turns()
    return Publication.objects.get()


def link() -> None:
    """As the scheduler does each second."""
    while chain.link_pending():
        continue


def give_up(actor: Actor, row: Publication) -> None:
    """As who looked at the page says it."""
    seen = showing.conflict_of(row.conflicts)
    services.overwrite(actor=actor, publication_id=row.pk, conflict=seen, reason="a test")


def kept(etcd: RealEtcd, prefix: str = AT) -> dict[str, Kept]:
    return {key.removeprefix(prefix): each for key, each in read_kept(etcd.etcd, prefix, 10_000).items()}


def said(etcd: RealEtcd, key: str = "revision") -> Any:
    return json.loads(kept(etcd)[key].value)


def save_list(actor: Actor, *networks: str, name: str = "office") -> None:
    entries = [{"network": network} for network in networks]
    save_object(actor=actor, kind="NetworkList", name=name, spec={"entries": entries})


def networks(etcd: RealEtcd) -> list[str]:
    return [each["network"] for each in said(etcd, LIST)["spec"]["entries"]]


def is_whole(etcd: RealEtcd) -> bool:
    """The rule for readers: no object is newer than `revision`, there are as many as it says, nothing is on its way."""
    there = kept(etcd)
    revision = there.pop("revision")
    newest = max((each.revision for each in there.values()), default=0)
    return newest <= revision.revision and len(there) == json.loads(revision.value)["objects"]


def test_definitions_are_published_as_documents_and_follow_what_changes(sink: RealEtcd, acme: Actor) -> None:
    save_list(acme, "192.0.2.0/24")
    row = look()
    assert (row.error, row.conflicts, row.revision) == ("", [], 1)
    assert said(sink) == {"revision": 1, "account": "acme", "objects": len(kept(sink)) - 1}
    document = said(sink, LIST)
    assert (document["kind"], document["name"], document["account"]) == ("NetworkList", "office", "acme")
    assert {key.split("/")[1] for key in kept(sink) if key != "revision"} >= {"NetworkList", "Pool", "Route"}
    before = kept(sink)
    assert look().revision == 1
    assert kept(sink) == before

    save_list(acme, "192.0.2.0/24", "198.51.100.0/24")
    assert look().revision == 2
    changed = {key for key, each in kept(sink).items() if each != before[key]}
    assert changed == {LIST, "revision"}
    assert len({kept(sink)[key].revision for key in changed}) == 1

    delete_object(actor=acme, kind="NetworkList", name="office")
    assert look().revision == 3
    assert before.keys() - kept(sink).keys() == {LIST}
    assert is_whole(sink)


def test_a_change_makes_a_sink_due_and_those_of_others_do_not(sink: RealEtcd, acme: Actor, globex: Actor) -> None:
    link()
    services.publish_in_turns()
    assert not services.due_sinks()
    save_list(globex, "203.0.113.0/24")
    link()
    assert not services.due_sinks()
    save_list(acme, "192.0.2.0/24")
    link()
    assert services.due_sinks()
    services.publish_in_turns()
    assert networks(sink) == ["192.0.2.0/24"]
    assert not services.due_sinks()


def test_what_somebody_else_changed_stays_until_an_operator_says_so(
    sink: RealEtcd, acme: Actor, operator: Actor
) -> None:
    save_list(acme, "192.0.2.0/24")
    look()
    mine = kept(sink)
    sink.put(AT + LIST, "{}")
    save_list(acme, "198.51.100.0/24")
    save_list(acme, "198.51.100.0/24", name="other")
    row = look()
    assert [(each["key"], each["what"]) for each in row.conflicts] == [(LIST, "changed")]
    assert kept(sink)[LIST].value == "{}"
    assert "objects/NetworkList/other" not in kept(sink)
    assert said(sink)["revision"] == 1

    with pytest.raises(Forbidden):
        give_up(acme, row)
    give_up(operator, row)
    entry = Entry.objects.filter(object_kind="Publication").get()
    assert (entry.action, entry.reason, entry.account) == ("overwrite", "a test", operator.account)
    sink.put(AT + LIST, "[]")  # after it was seen: nobody gave that up
    assert [each["key"] for each in look().conflicts] == [LIST]
    assert kept(sink)[LIST].value == "[]"

    with pytest.raises(Conflict, match="Other keys"):
        give_up(operator, row)
    give_up(operator, Publication.objects.get())
    row = look()
    assert (row.conflicts, row.overwrite, row.revision) == ([], {}, 2)
    assert networks(sink) == ["198.51.100.0/24"]
    assert is_whole(sink)
    assert kept(sink).keys() == mine.keys() | {"objects/NetworkList/other"}
    with pytest.raises(Conflict, match="No key"):
        give_up(operator, row)


def test_what_somebody_puts_back_is_no_conflict_any_more(sink: RealEtcd, acme: Actor) -> None:
    save_list(acme, "192.0.2.0/24")
    look()
    value = kept(sink)[LIST].value
    sink.delete(AT + LIST)
    sink.put(AT + "objects/NetworkList/theirs", "{}")
    sink.put("/spillway/acme-next/theirs", "{}")
    assert [(each["key"], each["what"]) for each in look().conflicts] == [
        (LIST, "deleted"),
        ("objects/NetworkList/theirs", "foreign"),
    ]
    sink.put(AT + LIST, value)
    sink.delete(AT + "objects/NetworkList/theirs")
    assert look().conflicts == []


def test_a_prefix_that_is_in_use_is_not_taken(sink: RealEtcd, acme: Actor, operator: Actor) -> None:
    sink.put(AT + "revision", "theirs")
    row = look()
    assert [(each["key"], each["what"]) for each in row.conflicts] == [("revision", "foreign")]
    assert kept(sink).keys() == {"revision"}
    give_up(operator, row)
    assert look().conflicts == []
    assert said(sink)["revision"] == 1


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


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_set_of_several_transactions_is_gone_on_with_and_readers_can_tell(
    sink: RealEtcd, acme: Actor, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr("apps.exporting.publishing.planning.MOST_WRITES", 2)
    look()
    for each in range(5):
        save_list(acme, "192.0.2.0/24", name=f"list-{each}")
    kill_at(monkeypatch, number, after=True)
    die_and_go_on(monkeypatch)
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


def test_a_row_that_cannot_be_read_stops_its_account_and_is_tried_again(sink: RealEtcd, acme: Actor) -> None:
    save_list(acme, "192.0.2.0/24")
    look()
    before = kept(sink)
    NetworkList.objects.update(entries=7)
    row = look()
    assert (row.error, row.failures) == ("The definitions cannot be read. The log of the worker says why.", 1)
    assert not services.due_sinks()
    assert kept(sink) == before


def test_a_user_without_the_right_to_write_is_told_and_one_with_it_publishes(
    etcd: RealEtcd, acme: Actor, settings: Settings, tmp_path: Path
) -> None:
    end = AT[:-1] + "0"  # the key after the prefix
    for name, right in (("root", "READWRITE"), ("reader", "READ"), ("writer", "READWRITE")):
        etcd.call("/v3/auth/user/add", name=name, password="of-etcd")
        etcd.call("/v3/auth/role/add", name=name)
        etcd.call("/v3/auth/user/grant", user=name, role=name)
        allowed = {"permType": right, "key": in_base64(AT), "range_end": in_base64(end)}
        etcd.call("/v3/auth/role/grant", name=name, perm=allowed)
    etcd.call("/v3/auth/enable")
    (tmp_path / "password").write_text("of-etcd\n")
    settings.REGISTRIES = str(tmp_path / "registries.json")
    for user, error in (("reader", "etcd refuses us: the operator's user may not use these keys."), ("writer", "")):
        entry = {"urls": list(etcd.etcd.urls), "user": user, "password_file": str(tmp_path / "password")}
        written = {"etcd": {"prod": entry | {"publish": {AT: "acme"}}}}
        Path(settings.REGISTRIES).write_text(json.dumps(written))
        assert look().error == error


def test_a_sink_that_nobody_names_is_forgotten_after_a_month_and_its_keys_stay(
    sink: RealEtcd, acme: Actor, allow: Callable[..., None]
) -> None:
    look()
    later = now() + timedelta(days=31)
    services.prune(later)
    assert Publication.objects.exists()
    allow(sink.etcd, {"/spillway/globex/": "globex"})
    services.prune(now())
    assert Publication.objects.exists()
    services.prune(later)
    assert not Publication.objects.exists()
    assert kept(sink)


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


@pytest.mark.exhaustive
def test_a_large_account_is_published_in_several_transactions(sink: RealEtcd, acme: Actor) -> None:
    rows = [NetworkList(account=acme.account, name=f"list-{number}", entries=[]) for number in range(4_900)]
    NetworkList.objects.bulk_create(rows)
    began = time.monotonic()
    assert look().error == ""
    first = time.monotonic() - began
    assert is_whole(sink)
    began = time.monotonic()
    assert look().revision == 1
    print(f"4 900 objects: published in {first:.1f} s, compared in {time.monotonic() - began:.1f} s")


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


@pytest.mark.parametrize("at_once", [126, 2])
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


def test_only_an_accounts_own_objects_go_where_the_operator_sends_them(
    etcd: RealEtcd, acme: Actor, globex: Actor, operator: Actor, allow: Callable[..., None]
) -> None:
    """Also where acme shares pools, or routes of both are on one load balancer."""
    save_list(globex, "203.0.113.0/24", name="theirs")
    allow(etcd.etcd, {AT: "acme", "/spillway/operator/": operator.account.name})
    services.publish_in_turns()
    services.publish_in_turns()
    for prefix, account in ((AT, "acme"), ("/spillway/operator/", operator.account.name)):
        documents = [json.loads(each.value) for key, each in kept(etcd, prefix).items() if key != "revision"]
        assert documents
        assert {each["account"] for each in documents} == {account}
    assert "objects/LoadBalancer/front" in kept(etcd, "/spillway/operator/")
    assert not kept(etcd, "/spillway/globex/")

    allow(etcd.etcd, {AT: "globex"})
    services.publish_in_turns()
    assert kept(etcd).keys() == {"objects/NetworkList/theirs", "revision"} | {
        key for key in kept(etcd) if json.loads(kept(etcd)[key].value).get("account") == "globex"
    }


def test_secrets_are_in_no_key(sink: RealEtcd, acme: Actor) -> None:
    rules = {
        "basic_auth": {"users": {"anna": "of-anna-and-nobody-else"}},
        "api_keys": {"keys": {"shop": "a-key-of-the-shop-and-nobody-else"}},
    }
    save_object(actor=acme, kind="Policy", name="let-in", spec={"rules": rules})
    look()
    assert "objects/Policy/let-in" in kept(sink)
    text = "".join(each.value for each in kept(sink).values())
    for secret in ("nobody-else", "$6$", "$2", "PRIVATE KEY", "digest", "hash"):
        assert secret not in text


@pytest.mark.parametrize(
    ("publish", "error"),
    [({AT: "nobody"}, "There is no account nobody."), ({AT: "acme"}, "acme has more than 1 objects")],
)
def test_what_cannot_be_published_leaves_what_is_there(
    sink: RealEtcd,
    acme: Actor,
    allow: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    publish: dict[str, str],
    error: str,
) -> None:
    look()
    before = kept(sink)
    monkeypatch.setattr(objects, "MOST_OBJECTS", 1)
    allow(sink.etcd, publish)
    assert look().error.startswith(error)
    assert kept(sink) == before
