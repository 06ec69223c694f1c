"""Servers that are looked up: by a real name server and a real list over HTTPS; a failing source changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.hostnames import resolving
from apps.audit.models import Entry
from apps.core import outbound
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.definitions.models import Backend, Pool, Server, ServerSource
from apps.definitions.reading.describing import describe
from apps.definitions.server_sources import finding
from apps.definitions.server_sources.asking import BadAnswer, ask
from apps.definitions.server_sources.deciding import CONFIRMED, FoundServer
from apps.definitions.server_sources.etcd.client import Etcd
from apps.definitions.server_sources.etcd.prefix import Prefix
from apps.definitions.server_sources.watched import Watched
from apps.definitions.server_sources.watching import Key, publish
from apps.definitions.services import save_object, set_server
from apps.definitions.shapes.servers.source import Kind
from apps.fleet.models import Fleet
from apps.observe.collect import lease
from apps.observe.evaluate import server_sources
from apps.observe.selectors import problems
from apps.observe.services import store_verdicts
from tests.e2e.name_server import NameServer, name_server
from tests.interfaces.forms import untouched
from tests.interfaces.people import client_of
from tests.issuer import Issuer, issuing, trusting

NAME = "app.internal"
PLAIN, SERVICE = f"dns://{NAME}:8080", f"srv://_http._tcp.{NAME}"


@pytest.fixture
def names(settings: Settings) -> Iterator[NameServer]:
    with name_server() as running:
        settings.RESOLVERS = [running.address]
        yield running


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    """A web server whose certificate is trusted; its body is the list."""
    monkeypatch.setattr(outbound, "_trusted", trusting)
    with issuing() as running:
        yield running


def pool_from(actor: Actor, source: str, **backend: Any) -> Pool:
    """A pool that a route of the tutorial uses."""
    spec = {"backends": [{"region": "us-central1", "servers_from": source} | backend]}
    row: Pool = save_object(actor=actor, kind="Pool", name="shop-next", spec=spec)
    Server.objects.filter(backend__pool=row).delete()
    return row


def asked() -> ServerSource:
    """The one source after it was asked again."""
    ServerSource.objects.update(next_at=now())
    assert finding.find_in_turns() == 1
    return ServerSource.objects.get()


def servers() -> list[str]:
    rows = Server.objects.filter(backend__pool__name="shop-next").order_by("address", "port")
    return [f"{row.address}:{row.port} {row.weight}{' backup' if row.backup else ''}" for row in rows]


def generation() -> int:
    return Fleet.objects.get(name="us-central1").desired_generation


@pytest.fixture
def acme(acme: Actor, tutorial_env: Actor) -> Actor:
    return acme


def test_servers_follow_a_name_and_each_change_is_pushed_and_recorded_once(acme: Actor, names: NameServer) -> None:
    pool = pool_from(acme, PLAIN)
    names.addresses[NAME] = ["10.9.0.7", "fd09::7"]
    before, source = generation(), asked()
    assert (source.error, source.failures, source.answered_at is not None) == ("", 0, True)
    assert servers() == ["10.9.0.7:8080 100", "fd09::7:8080 100"]
    assert generation() > before
    names.addresses[NAME] = ["10.9.0.7", "10.9.0.8"]
    asked()
    assert servers() == ["10.9.0.7:8080 100", "10.9.0.8:8080 100"]
    before = generation()
    asked()
    assert generation() == before
    entries = Entry.objects.filter(object_kind="Backend", object_label="acme/shop-next/us-central1").order_by("pk")
    assert [sorted((entry.after or {})["servers"].values()) for entry in entries] == [
        ["10.9.0.7:8080, weight 100", "fd09::7:8080, weight 100"],
        ["10.9.0.7:8080, weight 100", "10.9.0.8:8080, weight 100"],
    ]
    assert Pool.objects.get(pk=pool.pk).version == pool.version


def test_services_bring_ports_weights_and_backups(acme: Actor, names: NameServer) -> None:
    pool_from(acme, SERVICE)
    names.services[f"_http._tcp.{NAME}"] = [
        "10 65535 8001 web-1.app.internal.",
        "10 32768 8002 web-2.app.internal.",
        "20 0 8003 spare.app.internal.",
    ]
    asked()
    assert servers() == [
        "spare.app.internal:8003 0 backup",
        "web-1.app.internal:8001 256",
        "web-2.app.internal:8002 128",
    ]
    assert sorted(Server.objects.filter(backend__pool__name="shop-next").values_list("name", flat=True)) == [
        "spare", "web-1", "web-2",
    ]  # fmt: skip


def test_a_list_over_https_brings_targets_and_weights(acme: Actor, targets: Issuer) -> None:
    pool_from(acme, targets.url)
    groups = [{"targets": ["10.9.0.1:81", "[fd09::1]:82"], "labels": {"env": "x"}},
              {"targets": ["app.internal:83"], "labels": {"weight": "7"}}]  # fmt: skip
    targets.body = json.dumps(groups).encode()
    asked()
    assert servers() == ["10.9.0.1:81 100", "app.internal:83 7", "fd09::1:82 100"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "lists no server that can be used; the 1 known ones stay"),
        (b"{", "is not JSON"),
        (b'{"targets": []}', "no list of objects"),
        (b'[{"targets": "10.9.0.1:81"}]', "without a list of targets"),
        (b'[{"targets": ["10.9.0.1"]}]', "not host:port"),
        (b'[{"targets": ["10.9.0.1:99999"]}]', "not host:port"),
        (b'[{"targets": ["10.9.0.1:000001999999"]}]', "not host:port"),
        (b'[{"targets": ["10.9.0.1:%s"]}]' % (b"0" * 5000 + b"1"), "not host:port"),
        (b'[{"targets": ["10.9.0.1:81"], "labels": {"weight": "%s"}}]' % (b"0" * 5000 + b"1"), "no whole number"),
        (b'[{"targets": ["10.9.0.1:81"], "labels": {"weight": "300"}}]', "no whole number"),
        (json.dumps([{"targets": [f"10.9.1.{n}:81" for n in range(251)]}]).encode(), "at most 250"),
        (b" " * 1_048_577, "longer than 1 MB"),
    ],
)
def test_a_bad_answer_changes_nothing_and_is_shown(acme: Actor, targets: Issuer, body: bytes, said: str) -> None:
    pool_from(acme, targets.url)
    targets.body = b'[{"targets": ["10.9.0.1:81"]}]'
    assert asked().error == ""
    before, targets.body = generation(), body
    assert said in asked().error
    assert (servers(), generation()) == (["10.9.0.1:81 100"], before)


def test_a_source_that_fails_is_asked_later_and_later_and_its_servers_stay(acme: Actor, names: NameServer) -> None:
    pool_from(acme, PLAIN)
    names.addresses[NAME] = ["10.9.0.7"]
    asked()
    del names.addresses[NAME]
    pauses = []
    for _ in range(7):
        source = asked()
        pauses.append((source.next_at - (source.tried_at or source.next_at)).total_seconds())
    assert (source.error, source.failures) == (f"There is no name {NAME}.", 7)
    assert pauses == [2, 4, 8, 16, 32, 60, 60]
    assert servers() == ["10.9.0.7:8080 100"]
    names.addresses[NAME] = ["10.9.0.9", "10.9.0.7"]
    assert (asked().failures, len(servers())) == (0, 2)


def test_a_question_that_is_lost_on_its_way_is_asked_again(
    acme: Actor, names: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_from(acme, PLAIN)
    names.addresses[NAME] = ["10.9.0.7"]
    monkeypatch.setattr(resolving, "ONE_TRY_S", 0.1)
    names.loses = 1
    assert (asked().error, servers()) == ("", ["10.9.0.7:8080 100"])


def test_most_servers_go_only_when_the_source_has_said_so_for_a_while(acme: Actor, names: NameServer) -> None:
    pool_from(acme, PLAIN)
    names.addresses[NAME] = ["10.9.0.1", "10.9.0.2", "10.9.0.3"]
    asked()
    names.addresses[NAME] = ["10.9.0.1"]
    for _ in range(CONFIRMED - 1):
        assert asked().error.startswith("The source lists 1 of 3 known servers")
        assert len(servers()) == 3
    assert (asked().error, servers()) == ("", ["10.9.0.1:8080 100"])


def test_servers_that_we_may_not_call_are_left_out_without_a_word_about_the_name(
    acme: Actor, names: NameServer
) -> None:
    pool_from(acme, PLAIN)
    Fleet.objects.update(local_development=False)
    names.addresses[NAME] = ["127.0.0.1", "169.254.169.254", "10.9.0.7"]
    source = asked()
    assert servers() == ["10.9.0.7:8080 100"]
    assert source.left_out.startswith("2 of the 3 servers that the name leads to have addresses that no server of")
    assert "127.0.0.1" not in source.left_out, "a customer would read what the operator's resolver says"


def test_an_operator_reads_which_servers_are_left_out_and_why(tutorial_env: Actor, names: NameServer) -> None:
    Fleet.objects.update(local_development=False)
    backend = {"region": "us-central1", "servers_from": PLAIN}
    save_object(actor=tutorial_env, kind="Pool", name="own", spec={"backends": [backend]})
    names.addresses[NAME] = ["127.0.0.1", "10.9.0.7"]
    assert "127.0.0.1" in asked().left_out


def test_found_servers_over_the_quota_are_not_taken_and_the_pool_says_so(acme: Actor, names: NameServer) -> None:
    pool_from(acme, PLAIN)
    used = Server.objects.filter(account=acme.account).count()
    acme.account.quotas = {"servers": used + 1}
    acme.account.save()
    names.addresses[NAME] = ["10.9.0.7", "10.9.0.8"]
    source = asked()
    assert servers() == []
    assert f"is {used + 1} servers; this would make {used + 2}" in source.error
    acme.account.quotas = {}
    acme.account.save()
    ServerSource.objects.update(next_at=now())
    assert asked().error == ""
    assert len(servers()) == 2


def test_a_server_that_stays_keeps_its_state_its_weight_and_its_id(acme: Actor, names: NameServer) -> None:
    pool_from(acme, PLAIN)
    names.addresses[NAME] = ["10.9.0.7", "10.9.0.8"]
    asked()
    row = Server.objects.get(address="10.9.0.7")
    set_server(actor=acme, server_id=row.pk, state="drain", weight=20)
    names.addresses[NAME] = ["10.9.0.7", "10.9.0.8", "10.9.0.9"]
    asked()
    again = Server.objects.get(address="10.9.0.7")
    assert (again.pk, again.state, again.weight) == (row.pk, "drain", 20)


def test_a_document_names_the_source_and_never_what_it_listed(acme: Actor, names: NameServer) -> None:
    pool = pool_from(acme, PLAIN)
    names.addresses[NAME] = ["10.9.0.7"]
    asked()
    (backend,) = describe(Pool.objects.get(pk=pool.pk))["backends"]
    assert (backend["servers_from"], backend["servers"]) == (PLAIN, [])
    save_object(actor=acme, kind="Pool", name="shop-next", spec=describe(Pool.objects.get(pk=pool.pk)))
    assert servers() == ["10.9.0.7:8080 100"]
    with pytest.raises(Invalid, match="Leave the servers out"):
        pool_from(acme, PLAIN, servers=[{"name": "a", "address": "10.9.0.1", "port": 80}])


def test_without_its_source_a_backend_keeps_servers_only_where_they_are_listed(acme: Actor, names: NameServer) -> None:
    pool_from(acme, PLAIN)
    names.addresses[NAME] = ["10.9.0.7"]
    asked()
    with pytest.raises(Invalid, match=r"would have no servers: those of dns://app\.internal:8080 would be lost"):
        save_object(actor=acme, kind="Pool", name="shop-next", spec={"backends": [{"region": "us-central1"}]})
    kept = {"name": "s", "address": "10.9.0.7", "port": 8080}
    save_object(
        actor=acme, kind="Pool", name="shop-next", spec={"backends": [{"region": "us-central1", "servers": [kept]}]}
    )
    assert (servers(), ServerSource.objects.count()) == (["10.9.0.7:8080 100"], 0)


def test_a_worker_that_dies_is_missed_and_two_never_ask_at_once(acme: Actor, names: NameServer) -> None:
    pool_from(acme, PLAIN)
    claimed = ServerSource.objects.get()
    ServerSource.objects.update(next_at=now() + finding.CLAIM)  # somebody asks
    finding.find(source_id=claimed.pk)
    assert names.asked == []
    ServerSource.objects.update(next_at=now() - timedelta(seconds=1))  # and never came back
    finding.find(source_id=claimed.pk)
    assert names.asked != []


def test_what_was_asked_before_the_source_was_changed_counts_no_more(
    acme: Actor, names: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_from(acme, PLAIN)
    names.addresses[NAME] = ["10.9.0.7"]

    def slow(source: Any) -> Any:
        found = asking(source)
        Backend.objects.filter(pool__name="shop-next").update(servers_from="dns://other.internal:80")
        return found

    asking = ask
    monkeypatch.setattr(finding, "ask", slow)
    asked()
    assert servers() == []


def test_the_failure_of_a_source_is_not_that_of_the_one_in_its_place(
    acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_from(acme, PLAIN)
    ServerSource.objects.update(failures=9)

    def meanwhile(_source: object) -> list[FoundServer]:
        pool_from(acme, "dns://mended.internal:8080")
        raise BadAnswer("There is no such name.")

    with monkeypatch.context() as patch:
        patch.setattr(finding, "ask", meanwhile)
        row = asked()
    assert (row.error, row.failures) == ("", 0)
    assert row.next_at <= now()


def test_a_source_that_keeps_failing_is_a_problem_of_its_owner_until_it_answers(
    acme: Actor, globex: Actor, names: NameServer
) -> None:
    lease.share("collector")
    pool_from(acme, PLAIN)
    said = []
    for number in range(server_sources.FAILURES + 1):
        if number == server_sources.FAILURES:
            names.addresses[NAME] = ["10.9.0.7"]
        asked()
        store_verdicts(server_sources.evaluate_all(), now())
        said.append([each.sentence for each in problems(acme) if each.kind == "server_source"])
    assert said[:-2] == [[]] * (server_sources.FAILURES - 1)
    opening = "Server source of pool shop-next in us-central1 lists no servers that can be used."
    why = "There is no name app.internal. It never answered, so this region has no server from it."
    assert said[-2] == [f"{opening} {why}"]
    assert said[-1] == []
    assert [each for each in problems(globex) if each.kind == "server_source"] == []


def test_the_page_and_the_form_of_the_pool_show_the_source(acme: Actor, names: NameServer) -> None:
    pool, client = pool_from(acme, PLAIN), client_of(acme)
    asked()
    page = client.get(f"/pools/{pool.pk}").content.decode()
    assert PLAIN in page
    assert "There is no name app.internal." in page
    form = client.get(f"/pools/{pool.pk}/edit").content.decode()
    client.post(f"/pools/{pool.pk}/edit", untouched(form[form.index('id="pool-form"') - 50 :]))
    assert Backend.objects.get(pool=pool).servers_from == PLAIN


def test_servers_follow_a_file_that_the_operator_names_and_a_broken_one_changes_nothing(
    acme: Actor, globex: Actor, settings: Settings, tmp_path: Path
) -> None:
    file, registries = tmp_path / "shop.json", tmp_path / "registries.json"
    registries.write_text(json.dumps({"file": {"shop": {"path": str(file), "accounts": ["acme"]}}}))
    settings.REGISTRIES = str(registries)
    pool_from(acme, "file://shop")
    assert asked().error == "The file cannot be read on this worker."
    file.write_text('[{"targets": ["10.9.0.7:8080"], "labels": {"weight": "50"}}, {"targets": ["app.internal:80"]}]')
    assert asked().error == ""
    assert servers() == ["10.9.0.7:8080 50", "app.internal:80 100"]
    for text, said in (("[{", "not JSON"), ('[{"targets": ["10.9.0.7"]}]', "not host:port"), ("[]", "stay")):
        file.write_text(text)
        assert said in asked().error
    assert len(servers()) == 2
    with pytest.raises(Invalid, match="Pools of globex may not use a file shop; an operator allows that"):
        save_object(actor=globex, kind="Pool", name="p", spec={
            "backends": [{"region": "us-central1", "servers_from": "file://shop"}]
        })  # fmt: skip
    registries.write_text("{}")  # the operator takes it back
    assert "may not use a file shop" in asked().error


@pytest.mark.both_engines
@pytest.mark.parametrize("host", ["a\0b", "\ud800", "\u202emoc", "a" * 300, "x" * 5_000])
def test_a_target_that_no_column_could_hold_is_left_out_and_named(acme: Actor, targets: Issuer, host: str) -> None:
    pool_from(acme, targets.url)
    targets.body = json.dumps([{"targets": ["10.9.0.1:81", f"{host}:82"]}]).encode()
    source = asked()
    assert servers() == ["10.9.0.1:81 100"]
    assert "\N{REPLACEMENT CHARACTER}" in source.left_out
    assert "\0" not in source.left_out


def test_a_service_without_a_port_is_no_server(acme: Actor, names: NameServer) -> None:
    pool_from(acme, SERVICE)
    names.services[f"_http._tcp.{NAME}"] = ["10 1 0 web-1.app.internal."]
    assert "none from 1 to 65535" in asked().error
    assert servers() == []


class Keys(Prefix):
    """A prefix of etcd whose keys are known."""

    def __init__(self, prefix: str, keys: dict[str, str]) -> None:
        super().__init__(Etcd(("https://10.0.0.5:2379",)), prefix, lambda: None)
        self._keys, self.known = keys, True


@pytest.mark.both_engines
@pytest.mark.parametrize("key", ["bad", "b\0d"])
@pytest.mark.parametrize("value", ['{"address": "a\\u0000b", "port": 80}', '{"address": "\\ud800", "port": 80}', "x"])
def test_what_one_account_writes_into_a_registry_keeps_no_other_from_being_heard(
    acme: Actor, settings: Settings, tmp_path: Path, key: str, value: str
) -> None:
    file = tmp_path / "registries.json"
    entry = {"urls": ["https://10.0.0.5:2379"], "prefixes": {"/services/": ["acme"]}}
    file.write_text(json.dumps({"etcd": {"prod": entry}}))
    settings.REGISTRIES = str(file)
    pool_from(acme, "etcd://prod/services/bad/")
    pool = save_object(actor=acme, kind="Pool", name="other", spec={
        "backends": [{"region": "us-central1", "servers_from": "etcd://prod/services/good/"}]
    })  # fmt: skip
    watches: dict[Key, Watched] = {}
    for name, keys in (("bad", {f"/services/bad/{key}": value}), ("good", {"/services/good/web-1": "10.9.0.7:80"})):
        prefix = f"/services/{name}/"
        watches[Kind.ETCD, Etcd(("https://10.0.0.5:2379",)), prefix] = Keys(prefix, keys)
    publish(watches)
    rows = {row.backend.pool.name: row.listed or {} for row in ServerSource.objects.select_related("backend__pool")}
    assert rows["other"]["servers"] == [["10.9.0.7", 80, None, "web-1", False]]
    assert rows["shop-next"], "its owner sees what is wrong"
    ServerSource.objects.update(next_at=now())
    assert finding.find_in_turns() == 2
    assert Server.objects.filter(backend__pool=pool).count() == 1
