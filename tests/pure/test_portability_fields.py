"""A field of a kind is named by the table of what a cloud cannot do, or listed here as one that is not.

Whoever adds a field decides for each cloud. The lists do not prove that a cloud does the same: they keep a new field
from being overlooked. Assertions are judged by the compiler alone, whatever the target.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest

from apps.compiler.portability.table.policies import POLICIES
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.base.shape import About, Shape
from apps.definitions.shapes.base.words import Boolean
from apps.definitions.shapes.kinds import SHAPES
from apps.definitions.shapes.traffic.pool import PoolSpec

TARGETS = Path(__file__).resolve().parents[2] / "apps" / "compiler" / "targets" / "terraform"
OF_BOTH = TARGETS / "listener_options.py"  # speaks of both clouds, so each call names its target first
# Objects of which a table says all in one; and what is said with another field of the same object.
WHOLE = (
    *("agent_check", "outlier_ejection", "connections", "retries"),
    *(
        "listeners.access",
        "listeners.cache",
        "listeners.connections",
        "listeners.client_limit",
        "listeners.compression",
        "listeners.tracing",
        "listeners.sni_routes",
        "listeners.protocol_routes",
        "listeners.client_certificates",
    ),
)
WITH_OTHERS = {
    "server_tls.ca",
    "server_tls.server_name",
    "persistence.header",
    "persistence.http_only",
    "persistence.secure",
    "persistence.same_site",
    "persistence.idle_s",
}
# What the tables call an object of each kind, with where its fields stand in the document of the kind.
OBJECTS = {
    "Pool": {"pool": "", "server": "servers."},
    "Route": {"route": ""},
    "LoadBalancer": {"load_balancer": "", "front": "", "listener": "listeners."},
    "Certificate": {"certificate": ""},
}
RULES = {row.field.removeprefix("rules.") for row in POLICIES}
HOLDERS = ("action.", "backends.", "overflow.")  # which the tables leave out of a field's name
POOLS = {
    "servers_from",
    *WITH_OTHERS,
    "health_check.fall",
    "health_check.host",
    "health_check.interval_ms",
    "health_check.path",
    "health_check.port",
    "health_check.rise",
    "health_check.timeout_ms",
    "health_check.body",
    "health_check.expect",
    "health_check.expect_body",
    "health_check.send",
    "health_check.service",
    "health_check.user",
    "limit.measured_by",
    "limit.scope",
    "limit.value",
    "objective.availability",
    "objective.latency_ms",
    "objective.latency_share",
    "protocol",
    "queue_timeout_ms",
    "servers.name",
    "servers.port",
    "servers.state",
    "tags",
}
ROUTES = {
    "cookies.match",
    "cookies.name",
    "cookies.value",
    "query.match",
    "query.name",
    "query.value",
    "fixed_response.status",
    "headers.match",
    "headers.name",
    "headers.value",
    "load_balancer",
    "methods",
    "objective.availability",
    "objective.latency_ms",
    "objective.latency_share",
    "policies",
    "pools.pool",
    "pools.weight",
    "redirect.host",
    "redirect.keep_query",
    "scheme",
}
BALANCERS = {
    "fleets",
    "listeners.default_certificate",
    "listeners.default_pool",
    "listeners.name",
    "listeners.protocol",
    "listeners.tls.minimum_version",  # each cloud's own policies stand for them
    "listeners.tls.preset",
    "stacks",
}
SILENT = {
    ("aws", "Pool"): POOLS | {"region", "mode", "limit.kind", "order", "capacity_scaler", "health_check.method"},
    ("google", "Pool"): POOLS,
    ("aws", "Route"): ROUTES | {"client_networks", "redirect.port"},
    ("google", "Route"): ROUTES
    | {"fixed_response.content_type", "redirect.path", "redirect.prefix", "redirect.code", "prefix_rewrite"},
    ("aws", "LoadBalancer"): BALANCERS | {"listeners.static_ip"},
    ("google", "LoadBalancer"): BALANCERS | {"listeners.port", "listeners.tls.http3", "listeners.tls.alpn"},
    ("aws", "Certificate"): {"automatic.hostnames", "chain", "key"},
    ("google", "Certificate"): {"automatic.hostnames", "chain"},
}


def paths_of(shape: type[Shape], path: str = "") -> Iterator[str]:
    """Where each value of a shape and of the objects in it stands."""
    for field in fields_of(shape):
        if field.child and field.name != "assertions":
            yield from paths_of(field.child, f"{path}{field.name}.")
        elif field.name != "assertions":
            yield f"{path}{field.name}"


@cache
def rows_of(target: str) -> frozenset[tuple[str, str]]:
    """What the table of a target speaks of: the first and the third word of each `_refused(object, code, field, …)`."""
    found = set()
    for path in (*(TARGETS / target).rglob("*.py"), OF_BOTH):
        words, first = (("told",), 1) if path == OF_BOTH else (("_refused", "_lossy", "_told"), 0)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in words and len(node.args) > first + 2:
                found.add((ast.unparse(node.args[first]), ast.literal_eval(node.args[first + 2])))
    return frozenset(found)


def named_by(target: str, kind: str) -> set[str]:
    """The fields of a kind that the table of a target speaks of."""
    objects = OBJECTS[kind]
    return {short(objects[thing] + name) for thing, name in rows_of(target) if thing in objects and name}


def short(path: str) -> str:
    """The field as tables name it."""
    return next((path.removeprefix(holder) for holder in HOLDERS if path.startswith(holder)), path)


def silent(target: str, kind: str, shape: type[Shape]) -> set[str]:
    """The fields that the table of a target says nothing of."""
    named = named_by(target, kind)
    paths = set(map(short, paths_of(shape)))
    return {path for path in paths if path not in named | blocks(path) and not _in_whole(path, named)}


def blocks(path: str) -> set[str]:
    """The path itself where it belongs to a block of rules of which the table speaks."""
    block = path.removeprefix("rules.").partition(".")[0]
    return {path} if path.startswith("rules.") and block in RULES else set()


def _in_whole(path: str, named: set[str]) -> bool:
    return any(path.startswith(f"{holder}.") for holder in WHOLE if holder in named)


@pytest.mark.parametrize(("target", "kind"), SILENT)
def test_each_field_is_named_by_the_table_of_a_cloud_or_listed_as_one_that_is_not(target: str, kind: str) -> None:
    assert silent(target, kind, SHAPES[kind]) == SILENT[target, kind]


@pytest.mark.parametrize(("target", "kind"), SILENT)
def test_a_table_names_only_fields_that_there_are(target: str, kind: str) -> None:
    known = {".".join(path.split(".")[:depth]) for path in map(short, paths_of(SHAPES[kind])) for depth in (1, 2, 3)}
    assert named_by(target, kind) - known == set()


def test_every_object_that_a_table_speaks_of_is_of_a_kind_that_is_checked() -> None:
    known = {each for objects in OBJECTS.values() for each in objects}
    assert {thing for target in ("aws", "google") for thing, _ in rows_of(target)} == known


def test_a_field_that_nobody_decided_on_is_found() -> None:
    @dataclass(frozen=True, slots=True)
    class Grown(PoolSpec):
        """A pool with one field more."""

        mirrored: Annotated[Boolean, About("A new field.")] = False

    assert silent("aws", "Pool", Grown) - SILENT["aws", "Pool"] == {"mirrored"}
