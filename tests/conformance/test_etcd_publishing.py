"""Definitions as keys of a real etcd: published, changed, deleted, in the way, refused, and nobody else's."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden
from apps.definitions.models import NetworkList, Server
from apps.definitions.services import delete_object, save_object, set_server
from apps.exporting.models import Publication
from apps.exporting.publishing import objects, services
from apps.members.tokens import make_token
from tests.conformance.publishing_env import (
    AT,
    LIST,
    acme,
    allow,
    etcd,
    give_up,
    in_base64,
    is_whole,
    kept,
    link,
    look,
    networks,
    said,
    save_list,
    sink,
)
from tests.etcd import RealEtcd

__all__ = ["acme", "allow", "etcd", "sink"]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.django_db,
    pytest.mark.slow(reason="a real etcd starts, and is started again after it was killed"),
    pytest.mark.skipif(shutil.which("etcd") is None, reason="NOT CHECKED: there is no program etcd"),
]


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
    make_token(actor=acme, name="ci", role="editor")
    link()
    assert not services.due_sinks(), "nothing of a token is published"
    save_list(acme, "192.0.2.0/24")
    link()
    assert services.due_sinks()
    services.publish_in_turns()
    assert networks(sink) == ["192.0.2.0/24"]
    assert not services.due_sinks()


def test_a_changed_part_makes_a_sink_due(sink: RealEtcd, acme: Actor) -> None:
    server = Server.objects.filter(account=acme.account).earliest("pk")
    link()
    services.publish_in_turns()
    assert not services.due_sinks()
    set_server(actor=acme, server_id=server.pk, weight=7)
    link()
    assert services.due_sinks()


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
