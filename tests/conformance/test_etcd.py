"""Servers from the keys of a real etcd: listed, followed, forgotten, refused, and a member of three that dies."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.definitions.models import Pool, Server, ServerSource
from apps.definitions.server_sources import finding
from apps.definitions.server_sources.etcd.client import Watch, read_keys
from apps.definitions.server_sources.etcd.prefix import Prefix
from apps.definitions.server_sources.watched import Failed, Gone
from apps.definitions.server_sources.watching import Watching, followed, publish
from apps.definitions.services import save_object
from apps.definitions.shapes.servers.source import Kind, read_source
from tests.etcd import RealEtcd, real_etcd
from tests.waiting import until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow(reason="a real etcd starts, hashes passwords, and is tried again a second after it was away"),
    pytest.mark.skipif(shutil.which("etcd") is None, reason="NOT CHECKED: there is no program etcd"),
]
PREFIX = "/services/shop/"
WEB = f"etcd://prod{PREFIX}"
SOURCE = read_source(WEB)


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[RealEtcd]:
    with real_etcd(tmp_path) as running:
        yield running


@pytest.fixture
def watch(etcd: RealEtcd) -> Iterator[Prefix]:
    """The watch of the prefix, without what stores what it hears."""
    running = Prefix(etcd.etcd, PREFIX, lambda: None)
    running.start()
    until(lambda: running.known)
    yield running
    running.stop()


def addresses(watch: Prefix) -> list[str]:
    return [each.address for each in watch.servers_of(SOURCE)]


def test_keys_are_listed_followed_and_kept_while_etcd_is_away(etcd: RealEtcd) -> None:
    etcd.put(f"{PREFIX}web-1", "10.9.0.1:8080")
    etcd.put("/services/shop-next/web-1", "10.9.9.9:8080")
    watch = Prefix(etcd.etcd, PREFIX, lambda: None)
    watch.start()
    try:
        until(lambda: addresses(watch) == ["10.9.0.1"])
        etcd.put(f"{PREFIX}web-2", '{"URL": "http://10.9.0.2:8080"}')
        assert until(lambda: addresses(watch) == ["10.9.0.1", "10.9.0.2"]) < 2
        etcd.delete(f"{PREFIX}web-1")
        until(lambda: addresses(watch) == ["10.9.0.2"])
        etcd.kill(0)
        until(lambda: watch.error == "etcd does not answer.")
        assert addresses(watch) == ["10.9.0.2"]
        etcd.start(0)
        until(lambda: watch.error == "")
        etcd.put(f"{PREFIX}web-3", "10.9.0.3:8080")
        until(lambda: addresses(watch) == ["10.9.0.2", "10.9.0.3"])
    finally:
        watch.stop()


def test_a_revision_that_was_compacted_is_gone(etcd: RealEtcd) -> None:
    first = etcd.put(f"{PREFIX}web-1", "10.9.0.1:8080")
    etcd.compact(etcd.put(f"{PREFIX}web-1", "10.9.0.2:8080"))
    with pytest.raises(Gone):
        list(Watch(etcd.etcd, PREFIX, first))
    assert read_keys(etcd.etcd, PREFIX)[0] == {f"{PREFIX}web-1": "10.9.0.2:8080"}


def test_a_cluster_that_was_made_anew_is_read_anew(etcd: RealEtcd) -> None:
    for number in range(5):
        etcd.put(f"{PREFIX}web-1", f"10.9.0.{number}:8080")
    watch = Prefix(etcd.etcd, PREFIX, lambda: None)
    watch.start()
    try:
        until(lambda: addresses(watch) == ["10.9.0.4"])
        etcd.kill(0)
        shutil.rmtree(etcd.folder / "m0")
        etcd.start(0)
        etcd.wait()
        assert etcd.put(f"{PREFIX}web-1", "10.9.0.9:8080") < 6
        until(lambda: addresses(watch) == ["10.9.0.9"])
    finally:
        watch.stop()


def test_a_user_reads_what_it_may_and_no_error_shows_the_password(etcd: RealEtcd, tmp_path: Path) -> None:
    etcd.put(f"{PREFIX}web-1", "10.9.0.1:8080")
    for name, password in (("root", "of-root"), ("reader", "of-reader")):
        etcd.call("/v3/auth/user/add", name=name, password=password)
        etcd.call("/v3/auth/role/add", name=name)
        etcd.call("/v3/auth/user/grant", user=name, role=name)
    end = "L3NlcnZpY2VzL3Nob3Aw"  # the key after the prefix
    etcd.call(
        "/v3/auth/role/grant", name="reader", perm={"permType": "READ", "key": "L3NlcnZpY2VzL3Nob3Av", "range_end": end}
    )
    etcd.call("/v3/auth/enable")
    file = tmp_path / "password"
    file.write_text("of-reader\n")
    reader = replace(etcd.etcd, user="reader", password_file=str(file))
    assert read_keys(reader, PREFIX)[0] == {f"{PREFIX}web-1": "10.9.0.1:8080"}
    for user, prefix in ((reader, "/other/"), (etcd.etcd, PREFIX)):
        with pytest.raises(Failed):
            read_keys(user, prefix)
    file.write_text("wrong-password\n")
    with pytest.raises(Failed, match="etcd refuses us") as refusal:
        read_keys(reader, PREFIX)
    assert "wrong-password" not in str(refusal.value)


@pytest.fixture
def acme(acme: Actor, tutorial_env: Actor) -> Actor:
    return acme


@pytest.fixture
def allowed(etcd: RealEtcd, settings: Settings, tmp_path: Path) -> RealEtcd:
    """Pools of acme may use what is under the prefix."""
    written = tmp_path / "registries.json"
    entry = {"urls": list(etcd.etcd.urls), "prefixes": {"/services/shop/": ["acme"]}}
    written.write_text(json.dumps({"etcd": {"prod": entry}}))
    settings.REGISTRIES = str(written)
    return etcd


def pool_from(actor: Actor, source: str, name: str = "shop-next") -> Pool:
    spec = {"backends": [{"region": "us-central1", "servers_from": source}]}
    row: Pool = save_object(actor=actor, kind="Pool", name=name, spec=spec)
    Server.objects.filter(backend__pool=row).delete()
    return row


def servers() -> list[str]:
    rows = Server.objects.filter(backend__pool__name="shop-next").order_by("address")
    return [f"{row.address}:{row.port} {row.name} {row.weight}{' leaving' * row.leaving}" for row in rows]


@pytest.mark.django_db
def test_a_pool_has_the_servers_of_its_keys_and_keeps_them_when_the_keys_are_gone(
    acme: Actor, allowed: RealEtcd, watch: Prefix
) -> None:
    def look() -> ServerSource:
        watch.dirty = True
        publish({(Kind.ETCD, *watch._where): watch})
        ServerSource.objects.update(next_at=now())
        finding.find_in_turns()
        return ServerSource.objects.get()

    pool_from(acme, WEB)
    allowed.put(f"{PREFIX}web-1", '{"address": "10.9.0.1", "port": 8080, "weight": 50}')
    allowed.put(f"{PREFIX}web-2", '{"address": "10.9.0.2", "port": 8080, "draining": true}')
    until(lambda: len(addresses(watch)) == 2)
    assert look().error == ""
    assert servers() == ["10.9.0.1:8080 web-1 50", "10.9.0.2:8080 web-2 100 leaving"]
    allowed.put(f"{PREFIX}web-3", "not a server")
    until(lambda: watch.dirty)
    assert f"Key {PREFIX}web-3 names no server" in look().error
    for number in (1, 2, 3):
        allowed.delete(f"{PREFIX}web-{number}")
    until(lambda: not watch._keys)
    assert "stay" in look().error
    assert len(servers()) == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    "source", ["etcd://prod/services/shop-next/", "etcd://prod/services/", "etcd://other/services/shop/"]
)
def test_only_prefixes_that_the_operator_names_are_used(acme: Actor, allowed: RealEtcd, source: str) -> None:
    with pytest.raises(Invalid, match="an operator allows that"):
        pool_from(acme, source)
    pool_from(acme, "etcd://prod/services/shop/blue/")
    assert len(followed()) == 1


@pytest.mark.exhaustive
def test_of_three_members_one_may_die_at_any_time(tmp_path: Path) -> None:
    with real_etcd(tmp_path, members=3) as cluster:
        cluster.put(f"{PREFIX}web-0", "10.9.0.9:8080")
        watch = Prefix(cluster.etcd, PREFIX, lambda: None)
        watch.start()
        try:
            until(lambda: addresses(watch) == ["10.9.0.9"])
            for number in range(3):
                cluster.kill(number)
                until(lambda number=number: bool(cluster.put(f"{PREFIX}web-{number}", f"10.9.0.{number}:8080")), 60)  # type: ignore[misc]
                until(lambda number=number: f"10.9.0.{number}" in addresses(watch), 60)  # type: ignore[misc]
                cluster.start(number)
                time.sleep(3)  # until it follows its leader again
        finally:
            watch.stop()


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_many_changes_a_second_are_at_most_one_look_a_second(
    acme: Actor, allowed: RealEtcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.definitions.server_sources import watching

    pool_from(acme, WEB)
    woken: list[float] = []
    monkeypatch.setattr(watching, "enqueue", lambda *_, **__: woken.append(time.monotonic()))
    running = Watching()
    running.tick()
    try:
        began, written = time.monotonic(), 0
        while time.monotonic() - began < 5:
            allowed.put(f"{PREFIX}web-{written % 50}", f"10.9.{written % 200}.1:8080")
            written += 1
        until(lambda: f"10.9.{(written - 1) % 200}.1" in json.dumps(ServerSource.objects.get().listed))
    finally:
        running.stop()
    print(f"{written / 5:.0f} changes a second, {len(woken)} looks in 5 s")
    assert written > 5 * 100
    assert 3 <= len(woken) <= 7
