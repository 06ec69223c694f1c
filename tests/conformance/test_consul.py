"""Servers from a service of a real Consul: listed, followed, drained, refused, and kept while it is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.definitions.models import Pool, Server, ServerSource
from apps.definitions.server_sources import finding
from apps.definitions.server_sources.consul.client import Health
from apps.definitions.server_sources.consul.service import Service
from apps.definitions.server_sources.watched import Failed
from apps.definitions.server_sources.watching import Watching
from apps.definitions.services import save_object
from apps.definitions.shapes.servers.source import read_source
from tests.consul import RealConsul, real_consul, why_not_built
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(1500)]
WEB = read_source("consul://prod/web")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    if why := why_not_built():
        pytest.skip(f"NOT CHECKED: Consul was not built. {why}")


@pytest.fixture
def consul(tmp_path: Path) -> Iterator[RealConsul]:
    with real_consul(tmp_path) as running:
        yield running


@pytest.fixture
def watch(consul: RealConsul) -> Iterator[Service]:
    """The watch of the service, without what stores what it hears."""
    running = Service(consul.consul, "web", lambda: None)
    running.start()
    until(lambda: running.known)
    yield running
    running.stop()


def addresses(watch: Service, source: str = "consul://prod/web") -> list[str]:
    found = watch.servers_of(read_source(source))
    return sorted(f"{each.address}{' leaving' * each.leaving}" for each in found)


def test_instances_are_listed_followed_and_kept_while_consul_is_away(consul: RealConsul, watch: Service) -> None:
    consul.register("web-1", "10.9.0.1")
    assert until(lambda: addresses(watch) == ["10.9.0.1"]) < 3
    consul.register("web-2", "10.9.0.2", tags=("blue",))
    assert until(lambda: addresses(watch) == ["10.9.0.1", "10.9.0.2"]) < 3
    assert addresses(watch, "consul://prod/web?tag=blue") == ["10.9.0.2"]
    consul.tell("web-1", "critical")
    assert until(lambda: addresses(watch) == ["10.9.0.2"]) < 3
    consul.kill()
    until(lambda: watch.error == "Consul does not answer.")
    assert addresses(watch) == ["10.9.0.2"]
    consul.start()
    until(lambda: watch.error == "")
    for name in ("web-1", "web-2"):  # their checks are critical after such a death until somebody says otherwise
        consul.tell(name, "passing")
    until(lambda: addresses(watch) == ["10.9.0.1", "10.9.0.2"])


def test_an_instance_in_maintenance_is_drained_and_weights_are_those_of_its_health(
    consul: RealConsul, watch: Service
) -> None:
    consul.register("web-1", "10.9.0.1", weight=50)
    consul.register("web-2", "10.9.0.2", weight=100)
    until(lambda: [each.weight for each in watch.servers_of(WEB)] == [50, 100])
    consul.tell("web-2", "warning")
    until(lambda: [each.weight for each in watch.servers_of(WEB)] == [50, 1])
    consul.call("PUT", "/agent/service/maintenance/web-1?enable=true")
    until(lambda: addresses(watch) == ["10.9.0.1 leaving", "10.9.0.2"])
    consul.call("PUT", "/agent/service/maintenance/web-1?enable=false")
    until(lambda: addresses(watch) == ["10.9.0.1", "10.9.0.2"])


def test_a_question_waits_for_what_changes_and_can_be_cut(consul: RealConsul, watch: Service) -> None:
    consul.register("web-1", "10.9.0.1")
    until(lambda: addresses(watch) == ["10.9.0.1"])
    watch.stop()
    watch.join(5)
    assert not watch.is_alive(), "the question that waits a minute was ended"


def test_a_token_reads_what_it_may_and_no_error_shows_it(tmp_path: Path) -> None:
    with real_consul(tmp_path, closed=True) as consul:
        consul.register("web-1", "10.9.0.1")
        rules = 'service "web" { policy = "read" } node_prefix "" { policy = "read" }'
        consul.call("PUT", "/acl/policy", {"Name": "web", "Rules": rules})
        token = consul.call("PUT", "/acl/token", {"Policies": [{"Name": "web"}]})["SecretID"]
        file = tmp_path / "token"
        file.write_text(f"{token}\n")
        reader = replace(consul.consul, token_file=str(file))
        until(lambda: [each["Service"]["ID"] for each in Health(reader, "web").ask(0)[0]] == ["web-1"])
        assert Health(consul.consul, "web").ask(0)[0] == [], "without a token nothing is seen"
        file.write_text("11111111-2222-3333-4444-555555555555\n")
        with pytest.raises(Failed, match="Consul refuses us") as refusal:
            Health(reader, "web").ask(0)
        assert "11111111" not in str(refusal.value)


@pytest.mark.django_db(transaction=True)
def test_a_pool_takes_its_servers_from_the_service_and_is_never_emptied(
    consul: RealConsul, acme: Actor, tutorial_env: Actor, settings: Settings, tmp_path: Path
) -> None:
    written = tmp_path / "registries.json"
    entry = {"urls": list(consul.consul.urls), "services": {"web": ["acme"]}}
    written.write_text(json.dumps({"consul": {"prod": entry}}))
    settings.REGISTRIES = str(written)
    consul.register("web-1", "10.9.0.1")
    backend = {"region": "us-central1", "servers_from": "consul://prod/web"}
    save_object(actor=acme, kind="Pool", name="found", account="acme", spec={"protocol": "http", "backends": [backend]})
    pool, watching = Pool.objects.get(name="found"), Watching()

    def names() -> list[str]:
        watching.tick()
        for row in ServerSource.objects.all():
            finding.find(source_id=row.pk)
        return sorted(Server.objects.filter(backend__pool=pool).values_list("name", flat=True))

    try:
        until(lambda: names() == ["web-1"])
        consul.register("web-2", "10.9.0.2")
        until(lambda: names() == ["web-1", "web-2"])
        consul.tell("web-1", "critical")
        consul.tell("web-2", "critical")
        until(lambda: names() == ["web-1", "web-2"] and "stay" in ServerSource.objects.get().error)
    finally:
        watching.stop()
