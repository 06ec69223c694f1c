"""Services of Kubernetes as sources: one watch for a namespace, whatever the cluster does, and only for whom it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.definitions.models import Pool, Server, ServerSource
from apps.definitions.server_sources import finding, watched
from apps.definitions.server_sources.kubernetes.client import Cluster, list_slices
from apps.definitions.server_sources.kubernetes.namespace import Namespace
from apps.definitions.server_sources.registries import registry_of
from apps.definitions.server_sources.watching import followed, publish
from apps.definitions.services import save_object
from apps.definitions.shapes.servers.source import Kind, read_source
from tests.api_server import TOKEN, ApiServer, api_server, clusters_file, ending, endpoint, endpoint_slice
from tests.waiting import until

WEB = "kubernetes://prod/shop/web:http"


@pytest.fixture
def acme(acme: Actor, tutorial_env: Actor) -> Actor:
    return acme


@pytest.fixture
def cluster(settings: Settings, tmp_path: Path) -> Iterator[ApiServer]:
    with api_server() as running:
        settings.REGISTRIES = str(clusters_file(tmp_path, running, shop=["acme"]))
        yield running


@pytest.fixture
def watch(cluster: ApiServer) -> Iterator[Namespace]:
    """The watch of the namespace, without what stores what it hears: tests do that."""
    registry = registry_of(read_source(WEB), "acme")
    assert isinstance(registry, Cluster)
    running = Namespace(registry, "shop", lambda: None)
    running.start()
    yield running
    running.stop()


def pool_from(actor: Actor, source: str = WEB, name: str = "shop-next") -> Pool:
    spec = {"backends": [{"region": "us-central1", "servers_from": source}]}
    row: Pool = save_object(actor=actor, kind="Pool", name=name, spec=spec)
    Server.objects.filter(backend__pool=row).delete()
    return row


def heard(watch: Namespace, *addresses: str) -> bool:
    """Whether it knows of exactly these."""
    known = [one["addresses"][0] for each in watch._slices.values() for one in each["endpoints"] or ()]
    return watch.known and sorted(known) == sorted(addresses)


def stored(watch: Namespace) -> ServerSource:
    """The one source after what was heard was stored and looked at."""
    watch.dirty = True
    publish({(Kind.KUBERNETES, *watch._where): watch})
    ServerSource.objects.update(next_at=now())
    finding.find_in_turns()
    return ServerSource.objects.get()


def servers() -> list[str]:
    rows = Server.objects.filter(backend__pool__name="shop-next").order_by("address")
    return [f"{row.address}:{row.port} {row.name}{' leaving' * row.leaving}" for row in rows]


def test_pods_come_end_and_go_as_the_watch_says(acme: Actor, cluster: ApiServer, watch: Namespace) -> None:
    pool_from(acme)
    pods = [{"targetRef": {"name": f"web-{number}", "uid": str(number)}} for number in range(3)]
    cluster.put(endpoint_slice("a", "web", *(endpoint(f"10.9.0.{n}", **pod) for n, pod in enumerate(pods, 1))))
    until(lambda: heard(watch, "10.9.0.1", "10.9.0.2", "10.9.0.3"))
    assert stored(watch).error == ""
    assert servers() == ["10.9.0.1:8080 web-0", "10.9.0.2:8080 web-1", "10.9.0.3:8080 web-2"]
    cluster.put(endpoint_slice("a", "web", endpoint("10.9.0.1", **pods[0]), ending("10.9.0.2", **pods[1])))
    until(lambda: heard(watch, "10.9.0.1", "10.9.0.2"))
    stored(watch)
    assert servers() == ["10.9.0.1:8080 web-0", "10.9.0.2:8080 web-1 leaving"]
    assert (cluster.lists, cluster.watches) == (1, 1)


def test_a_pod_that_ends_is_drained_on_nodes_and_a_persons_word_stays(
    acme: Actor, cluster: ApiServer, watch: Namespace
) -> None:
    from apps.compiler.model.shared import ServerState
    from apps.definitions.freezing.frozen_traffic import frozen_servers

    pool_from(acme)
    cluster.put(endpoint_slice("a", "web", endpoint("10.9.0.1"), ending("10.9.0.2")))
    until(lambda: heard(watch, "10.9.0.1", "10.9.0.2"))
    stored(watch)
    rows = Server.objects.filter(backend__pool__name="shop-next")

    def states() -> dict[str, ServerState]:
        (frozen,) = frozen_servers(rows, "backend__pool_id", []).values()
        return {each.address: each.state for each in frozen}

    assert states() == {"10.9.0.1": ServerState.READY, "10.9.0.2": ServerState.DRAIN}
    rows.update(state=ServerState.MAINTENANCE)
    assert set(states().values()) == {ServerState.MAINTENANCE}


def test_a_service_without_ready_pods_keeps_its_servers(acme: Actor, cluster: ApiServer, watch: Namespace) -> None:
    pool_from(acme)
    cluster.put(endpoint_slice("a", "web", endpoint("10.9.0.1")))
    until(lambda: heard(watch, "10.9.0.1"))
    stored(watch)
    cluster.put(endpoint_slice("a", "web", ending("10.9.0.1"), ending("10.9.0.2")))
    until(lambda: heard(watch, "10.9.0.1", "10.9.0.2"))
    assert "the 1 known ones stay" in stored(watch).error
    cluster.put(endpoint_slice("a", "web"))
    until(lambda: heard(watch))
    assert "the 1 known ones stay" in stored(watch).error
    cluster.delete("a")
    until(lambda: not watch._slices)
    assert "the 1 known ones stay" in stored(watch).error
    assert servers() == ["10.9.0.1:8080 10-9-0-1-8080"]


def test_a_broken_watch_goes_on_and_a_forgotten_version_is_listed_again(
    cluster: ApiServer, watch: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "ONCE_IN_S", 0.05)
    until(lambda: cluster.open == 1)
    cluster.cut()
    cluster.put(endpoint_slice("a", "web", endpoint("10.9.0.1")))
    until(lambda: heard(watch, "10.9.0.1"))
    assert (cluster.lists, cluster.watches) == (1, 2)
    cluster.compact()
    until(lambda: cluster.lists == 2)
    cluster.put(endpoint_slice("b", "web", endpoint("10.9.0.2")))
    until(lambda: heard(watch, "10.9.0.1", "10.9.0.2"))
    assert watch.error == ""


def test_a_list_comes_in_pages(cluster: ApiServer, watch: Namespace) -> None:
    cluster.page = 2
    for number in range(5):
        cluster.put(endpoint_slice(f"s{number}", "web"))
    found, version = list_slices(*watch._where)
    assert (len(found), version) == (5, str(cluster.version))


@pytest.mark.parametrize(
    ("status", "said"),
    [(403, "The cluster refuses us (403)"), (500, "The cluster answers with 500"), (0, "The cluster does not answer")],
)
def test_a_cluster_that_fails_empties_nothing_and_says_no_secret(
    acme: Actor, cluster: ApiServer, watch: Namespace, status: int, said: str
) -> None:
    pool_from(acme)
    cluster.put(endpoint_slice("a", "web", endpoint("10.9.0.1")))
    until(lambda: heard(watch, "10.9.0.1"))
    stored(watch)
    where, _ = watch._where
    broken = watch
    broken.stop()
    cluster.status = status
    if not status:
        where = type(where)("https://localhost:9", where.ca_file, where.token_file)
    failing = Namespace(where, "shop", lambda: None)
    failing.start()
    until(lambda: failing.error != "")
    failing._where = watch._where
    source = stored(failing)
    failing.stop()
    assert said in source.error
    assert TOKEN not in f"{source.error}{source.listed}"
    assert servers() == ["10.9.0.1:8080 10-9-0-1-8080"]


def test_what_nobody_watches_any_more_is_not_believed(acme: Actor, cluster: ApiServer, watch: Namespace) -> None:
    pool_from(acme)
    cluster.put(endpoint_slice("a", "web", endpoint("10.9.0.1")))
    until(lambda: heard(watch, "10.9.0.1"))
    stored(watch)
    ServerSource.objects.update(next_at=now(), heard_at=now() - timedelta(minutes=1))
    finding.find_in_turns()
    assert "No process of the console has watched" in ServerSource.objects.get().error
    assert len(servers()) == 1


def test_addresses_that_no_server_may_have_are_left_out(acme: Actor, cluster: ApiServer, watch: Namespace) -> None:
    from apps.fleet.models import Fleet

    pool_from(acme)
    Fleet.objects.update(local_development=False)
    cluster.put(endpoint_slice("a", "web", endpoint("127.0.0.1"), endpoint("169.254.169.254"), endpoint("10.9.0.1")))
    until(lambda: heard(watch, "127.0.0.1", "169.254.169.254", "10.9.0.1"))
    assert "169.254.169.254" in stored(watch).left_out
    assert servers() == ["10.9.0.1:8080 10-9-0-1-8080"]


def test_only_accounts_that_the_operator_names_use_a_namespace(
    acme: Actor, globex: Actor, cluster: ApiServer, settings: Settings
) -> None:
    pool_from(acme)
    assert [(source.name, source.service) for _, source, _ in followed()] == [("shop", "web")]
    said = r"Pools of (acme|globex) may not use namespace (shop|other) of a cluster (prod|none); an operator allows"
    for actor, source in (
        (globex, WEB), (acme, "kubernetes://prod/other/web"), (acme, "kubernetes://none/shop/web"),
    ):  # fmt: skip
        with pytest.raises(Invalid, match=said):
            pool_from(actor, source, name="theirs")
    written = Path(settings.REGISTRIES)  # the operator takes it back
    entries = json.loads(written.read_text())
    entries["kubernetes"]["prod"]["namespaces"] = {}
    written.write_text(json.dumps(entries))
    assert followed() == []
    ServerSource.objects.update(next_at=now())
    finding.find_in_turns()
    assert "may not use namespace shop" in ServerSource.objects.get().error


def test_many_changes_are_one_answer_and_many_pools_one_watch(
    acme: Actor, cluster: ApiServer, watch: Namespace
) -> None:
    pool_from(acme)
    pool_from(acme, "kubernetes://prod/shop/api", name="api")
    assert len({key for _, _, key in followed()}) == 1
    for number in range(200):
        cluster.put(endpoint_slice("a", "web", *(endpoint(f"10.9.0.{n}") for n in range(1, 2 + number % 3))))
    until(lambda: heard(watch, "10.9.0.1", "10.9.0.2"))
    before = Server.objects.count()
    assert before == 0 or servers() == []
    publish({(Kind.KUBERNETES, *watch._where): watch})
    heard_at = ServerSource.objects.filter(heard_at__isnull=False).count()
    watch.dirty = False
    publish({(Kind.KUBERNETES, *watch._where): watch})  # nothing changed since
    assert (heard_at, ServerSource.objects.get(backend__pool__name="shop-next").failures) == (2, 0)
