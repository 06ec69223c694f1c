"""What names a source at a registry, and which servers the keys of etcd name; else the key is told."""

from __future__ import annotations

import pytest

from apps.compiler.grammar import GrammarError
from apps.definitions.server_sources.deciding import FoundServer
from apps.definitions.server_sources.etcd.keys import servers_of
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
    for wrong in ("autoscaling://prod/web", "autoscaling://prod/a/b:80", "ecs://prod/web:80", "ecs://prod/a/b:65536"):
        with pytest.raises(GrammarError, match="with the port of the servers"):
            read_source(wrong)
