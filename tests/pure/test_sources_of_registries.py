"""What names a source at a registry, and which servers the keys of etcd name; else the key is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.compiler.grammar import GrammarError
from apps.definitions.server_sources.consul import instances
from apps.definitions.server_sources.consul.client import Consul
from apps.definitions.server_sources.deciding import FoundServer
from apps.definitions.server_sources.etcd.keys import servers_of
from apps.definitions.server_sources.registries import NotYours, registry_of
from apps.definitions.server_sources.watched import Unclear
from apps.definitions.shapes.servers.source import Kind, read_source

KEY = "/services/web/web-1"


@pytest.mark.parametrize(
    ("value", "server"),
    [
        ("10.0.0.7:8080", FoundServer("10.0.0.7", 8080, hint="web-1")),
        ("10.0.0.7:8080\n", FoundServer("10.0.0.7", 8080, hint="web-1")),
        ("http://10.0.0.7:8080/", FoundServer("10.0.0.7", 8080, hint="web-1")),
        ("[2001:db8::7]:8080", FoundServer("2001:db8::7", 8080, hint="web-1")),
        ('{"URL": "http://App.internal:80"}', FoundServer("app.internal", 80, hint="web-1")),
        ('{"address": "10.0.0.7", "port": 80, "weight": 0}', FoundServer("10.0.0.7", 80, 0, hint="web-1")),
        (
            '{"address": "10.0.0.7", "port": 80, "draining": true}',
            FoundServer("10.0.0.7", 80, hint="web-1", leaving=True),
        ),
    ],
)
def test_a_value_names_a_server(value: str, server: FoundServer) -> None:
    assert servers_of({KEY: value}) == [server]


@pytest.mark.parametrize(
    "value",
    [
        *("", "10.0.0.7", ":8080", "10.0.0.7:0", "10.0.0.7:65536", "10.0.0.7:80:", "http://a/b:80", "{", "{}", "[]"),
        *('{"URL": 7}', '{"address": 7, "port": 80}', '{"address": "a", "port": true}', '{"address": "a"}'),
        '{"address": "a", "port": 80, "weight": 257}',
        '{"address": "a", "port": 80, "weight": true}',
        '{"address": "a", "port": 80, "weight": "50"}',
        '{"address": "a", "port": 80, "draining": "yes"}',
    ],
)
def test_what_names_no_server_is_told_by_its_key(value: str) -> None:
    with pytest.raises(Unclear, match=KEY):
        servers_of({KEY: value})


def instance(name: str, *checks: tuple[str, str], weights: tuple[int, int] = (1, 1), **service: Any) -> dict[str, Any]:
    """As Consul answers; a check is its id and its status."""
    said = {"ID": name, "Address": "10.0.0.7", "Port": 8080, "Weights": {"Passing": weights[0], "Warning": weights[1]}}
    return {
        "Node": {"Node": "n1", "Address": "10.0.0.1"},
        "Service": said | service,
        "Checks": [{"CheckID": check, "Status": status} for check, status in checks],
    }


@pytest.mark.parametrize(
    ("checks", "servers"),
    [
        ((("serfHealth", "passing"),), [FoundServer("10.0.0.7", 8080, hint="web-1")]),
        ((("serfHealth", "passing"), ("c", "warning")), [FoundServer("10.0.0.7", 8080, hint="web-1")]),
        ((("serfHealth", "critical"),), []),
        ((("_service_maintenance:web-1", "critical"),), [FoundServer("10.0.0.7", 8080, hint="web-1", leaving=True)]),
        (
            (("_node_maintenance", "critical"), ("c", "warning")),
            [FoundServer("10.0.0.7", 8080, hint="web-1", leaving=True)],
        ),
        ((("_node_maintenance", "critical"), ("c", "critical")), []),
        ((), [FoundServer("10.0.0.7", 8080, hint="web-1")]),
    ],
)
def test_an_instance_of_consul_serves_is_drained_or_is_none(
    checks: tuple[tuple[str, str], ...], servers: list[FoundServer]
) -> None:
    assert instances.servers_of([instance("web-1", *checks)]) == servers


def test_weights_of_consul_count_where_they_differ_and_within_ours() -> None:
    passing, warning = ("c", "passing"), ("c", "warning")
    two = [instance("a", passing, weights=(10, 3)), instance("b", warning, weights=(10, 3))]
    assert [each.weight for each in instances.servers_of(two)] == [10, 3]
    large = [instance("a", passing, weights=(65535, 1)), instance("b", passing), instance("c", passing, weights=(0, 0))]
    assert [each.weight for each in instances.servers_of(large)] == [256, 1, 0]


def test_an_instance_of_consul_without_an_address_is_at_its_node_and_a_tag_chooses() -> None:
    found = instances.servers_of([instance("a", Address="", Tags=["blue"]), instance("b", Tags=["green"])], "blue")
    assert found == [FoundServer("10.0.0.1", 8080, hint="a")]


@pytest.mark.parametrize("odd", [{}, 7, {"Service": 7}, instance("a", Port=0), instance("a", Port="80")])
def test_an_instance_without_an_address_or_a_port_is_told(odd: object) -> None:
    with pytest.raises(Unclear, match="without an address and a port"):
        instances.servers_of([odd])


def test_a_service_of_consul_may_have_a_tag() -> None:
    found = read_source("consul://prod/web?tag=v1.2")
    assert (found.kind, found.registry, found.name, found.tag) == (Kind.CONSUL, "prod", "web", "v1.2")
    for wrong in (
        "consul://prod",
        "consul://prod/a/b",
        "consul://prod/web?dc=x",
        "consul://prod/web?tag=",
        "consul:///web",
    ):
        with pytest.raises(GrammarError, match="Write the service as"):
            read_source(wrong)


def test_only_services_of_consul_that_the_operator_names_are_used(settings: Settings, tmp_path: Path) -> None:
    entry = {"urls": ["http://127.0.0.1:1"], "token_file": "/x", "datacenter": "eu", "services": {"web": ["acme"]}}
    (tmp_path / "registries.json").write_text(json.dumps({"consul": {"prod": entry}}))
    settings.REGISTRIES = str(tmp_path / "registries.json")
    found = registry_of(read_source("consul://prod/web?tag=blue"), "acme")
    assert found == Consul(("http://127.0.0.1:1",), "", "/x", "eu")
    for source, account in (
        ("consul://prod/web", "globex"),
        ("consul://prod/db", "acme"),
        ("consul://dev/web", "acme"),
    ):
        with pytest.raises(NotYours, match="an operator allows that"):
            registry_of(read_source(source), account)


def test_a_prefix_ends_with_a_slash() -> None:
    found = read_source("etcd://prod/vulcand/backends/web/servers/")
    assert (found.kind, found.registry, found.name) == (Kind.ETCD, "prod", "/vulcand/backends/web/servers/")
    for wrong in (
        "etcd://prod/services",
        "etcd://prod/",
        "etcd://prod",
        "etcd:///a/",
        "etcd://prod//a/",
        "etcd://p/a b/",
    ):
        with pytest.raises(GrammarError, match="with a slash at the end"):
            read_source(wrong)


def test_a_file_is_called_by_the_operators_name() -> None:
    assert read_source("file://shop").registry == "shop"
    for wrong in ("file:///etc/passwd", "file://", "file://../x", "file://Shop"):
        with pytest.raises(GrammarError, match="the name that the operator gave"):
            read_source(wrong)


def test_groups_and_services_of_aws_are_named_with_their_port() -> None:
    group, service = read_source("autoscaling://prod/Web.blue_1:8080"), read_source("ecs://prod/main/web:80")
    assert (group.kind, group.registry, group.name, group.port) == (Kind.AUTOSCALING, "prod", "Web.blue_1", 8080)
    assert (service.kind, service.registry, service.name, service.port) == (Kind.ECS, "prod", "main/web", 80)
    tagged = read_source("ec2://prod/kubernetes.io/role:a=web:8080")
    assert (tagged.kind, tagged.name, tagged.port) == (Kind.EC2, "kubernetes.io/role:a=web", 8080)
    for wrong in (
        "ec2://prod/role:80",
        "ec2://prod/role=w*:80",
        "ec2://prod/role=web",
        "autoscaling://prod/web",
        "autoscaling://prod/a/b:80",
        "ecs://prod/web:80",
        "ecs://prod/a/b:65536",
    ):
        with pytest.raises(GrammarError, match="with the port of the servers"):
            read_source(wrong)
