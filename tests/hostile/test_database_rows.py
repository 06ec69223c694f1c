"""Values that are in the database already: their object is left out and named, and everybody else's stays as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Model

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.compiler.bundle import Bundle
from apps.compiler.compile import Compilation, compile_snapshot
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Backend, HealthCheck, Pool, Route, Server
from apps.definitions.services import save_object
from apps.fleet.models import Fleet
from tests.breadth import first_of
from tests.hostile.corpus import SHARP, VALUES
from tests.hostile.legal import (
    METHOD,
    Legal,
    body,
    check_path,
    header_name,
    header_value,
    is_host,
    is_path,
    is_query,
    maybe,
    one_host,
    server_address,
    server_host,
    text,
    whole,
)

pytestmark = pytest.mark.django_db
WHOLE = (pytest.mark.exhaustive, pytest.mark.slow(reason="the whole corpus: hundreds of compilations"))
ALL = [value for _, value in VALUES]
Write = Callable[[Any], Any]


def _column(rows: type[Model], column: str, **which: Any) -> Write:
    def write(value: Any) -> Any:
        found = rows._default_manager.filter(**which)
        found.update(**{column: value})
        return found.get()

    return write


def _route(column: str, wrap: Callable[[Any], Any] = lambda value: value, name: str = "hostile") -> Write:
    return lambda value: _column(Route, column, name=name)(wrap(value))


def kept_whole(lowest: int, highest: int) -> Legal:
    """A whole number; a column of whole numbers keeps what Python reads as one: no fraction, digits of any script."""

    def legal(value: Any) -> bool:
        if isinstance(value, str | bool):
            with contextlib.suppress(ValueError):
                return whole(lowest, highest)(int(value))
        return isinstance(value, float) or whole(lowest, highest)(value)

    return legal


def kept_text(legal: Legal) -> Legal:
    """A column of text keeps everything as text: the number nan is the name "nan", which a server may have."""
    return lambda value: legal(str(value)) if isinstance(value, float) else legal(value)


# What is written straight into a column, and which of the values that column may hold.
COLUMNS: dict[str, tuple[Write, Legal]] = {
    "route path": (_route("path"), is_path),
    "route prefix": (_route("prefix_rewrite"), is_path),
    "route kind": (_route("path_kind"), text(6, "exact|prefix")),
    "route scheme": (_route("scheme"), text(5, "(http|https)?")),
    "route methods": (_route("methods", lambda value: [value]), METHOD),
    "header name": (_route("headers", lambda v: [{"name": v, "match": "equals", "value": "v"}]), header_name),
    "header value": (_route("headers", lambda v: [{"name": "X-A", "match": "equals", "value": v}]), header_value),
    "redirect host": (
        _route(
            "redirect", lambda v: {"code": 301, "scheme": None, "host": v, "path": None, "keep_query": True}, "moved"
        ),
        one_host,
    ),
    "redirect path": (
        _route(
            "redirect", lambda v: {"code": 301, "scheme": None, "host": None, "path": v, "keep_query": True}, "moved"
        ),
        is_path,
    ),
    "redirect prefix": (
        _route(
            "redirect",
            lambda v: {"code": 301, "scheme": None, "host": "b.example", "path": None, "prefix": v},
            "moved",
        ),
        is_path,
    ),
    "redirect port": (
        _route("redirect", lambda v: {"code": 301, "scheme": None, "host": "b.example", "port": v}, "moved"),
        whole(1, 65535),
    ),
    "redirect query": (
        _route("redirect", lambda v: {"code": 301, "scheme": None, "host": "b.example", "query": v}, "moved"),
        is_query,
    ),
    "fixed body": (
        _route("fixed_response", lambda v: {"status": 200, "content_type": "text/plain", "body": v}, "fixed"),
        body,
    ),
    "fixed type": (
        _route("fixed_response", lambda v: {"status": 200, "content_type": v, "body": "x"}, "fixed"),
        text(128, r"[a-z0-9.+-]+/[a-z0-9.+-]+(; charset=[a-z0-9-]+)?"),
    ),
    "hostname": (_column(Hostname, "name", name__contains="hostile"), kept_text(is_host)),
    "server address": (_column(Server, "address", name="hostile"), kept_text(server_address)),
    "server weight": (_column(Server, "weight", name="hostile"), kept_whole(0, 256)),
    "server port": (_column(Server, "port", name="hostile"), kept_whole(1, 65_535)),
    "check path": (_column(HealthCheck, "path", pool__name="hostile"), check_path),
    "check host": (_column(HealthCheck, "host", pool__name="hostile"), kept_text(maybe(server_host))),
    "check method": (_column(HealthCheck, "method", pool__name="hostile"), METHOD),
    "pool timeout": (_column(Pool, "server_timeout_ms", name="hostile"), kept_whole(1, 3_600_000)),
    "pool protocol": (_column(Pool, "protocol", name="hostile"), text(20, "http|https|tcp")),
    "pool balance": (_column(Pool, "balance", name="hostile"), text(20, "leastconn|roundrobin|source|random")),
    "pool when full": (_column(Pool, "when_full", name="hostile"), text(20, "spread|queue|refuse")),
    "server state": (_column(Server, "state", name="hostile"), text(20, "ready|drain|maintenance")),
    "limit kind": (_column(Backend, "limit_kind", pool__name="hostile"), text(20, "none|rate|connections")),
    "limit": (_column(Backend, "limit_value", pool__name="hostile"), kept_whole(0, 10_000_000)),
}
# Whole JSON columns of the wrong form, as a broken migration or a hand in the database leaves them.
SHAPES = ["x", 17, {}, {"a": 1}, [{}], [17], [None], [[]], {"code": "x"}, [{"name": "X-A"}], True]


@pytest.fixture
def fleet(tutorial_env: Actor) -> Fleet:
    """The tutorial, and beside it a pool and routes of acme that will be spoilt."""
    server = {"name": "hostile", "address": "127.0.0.1", "port": 9999}
    other = {"name": "good", "address": "127.0.0.1", "port": 9998}
    limit = {"kind": "rate", "value": 5}
    backend = {"region": "us-central1", "limit": limit, "servers": [server, other]}
    _save("Pool", "hostile", {"backends": [backend], "health_check": {"path": "/up"}}, tutorial_env)
    base = {"load_balancer": "front", "hostname": "hostile.acme.example"}
    pools = {"pools": [{"pool": "hostile"}]}
    _save("Route", "hostile", base | {"path": "/a", "prefix_rewrite": "/b", "action": pools}, tutorial_env)
    _save(
        "Route",
        "moved",
        base | {"path": "/m", "action": {"redirect": {"code": 301, "host": "b.example"}}},
        tutorial_env,
    )
    _save("Route", "fixed", base | {"path": "/f", "action": {"fixed_response": {"status": 200}}}, tutorial_env)
    return Fleet.objects.get(name="us-central1")


def _save(kind: str, name: str, spec: dict[str, Any], operator: Actor) -> None:
    save_object(actor=operator, kind=kind, name=name, account="acme", spec=spec)


def of_globex(compilation: Compilation[Bundle]) -> list[str]:
    """Every line that belongs to the other customer, in the configuration and in the maps."""
    lines = compilation.output.files["haproxy.cfg"].decode().splitlines()
    routes = {f"route-{pk}" for pk in Route.objects.filter(account__name="globex").values_list("pk", flat=True)}
    pools = {f"pool-{pk}" for pk in Pool.objects.filter(account__name="globex").values_list("pk", flat=True)}
    owned = [lines[number - 1] for number, owner in compilation.output.line_owners.items() if owner in routes | pools]
    maps = [
        line
        for path, content in sorted(compilation.output.files.items())
        if path.startswith("maps/")
        for line in content.decode().splitlines()
        if set(line.split()) & (routes | pools)
    ]
    return owned + maps


def spoil(write: Write, value: Any, fleet: Fleet) -> tuple[Compilation[Bundle], Any] | None:
    """Compile with the value in the row, then take it back; None where the database itself refuses to keep it."""
    with transaction.atomic():
        try:
            with transaction.atomic():
                row = write(value)
                row.refresh_from_db()
        except Exception:  # noqa: BLE001 - whatever a column says of a value that it cannot hold
            return None
        found = compile_snapshot(snapshot_of(fleet))
        transaction.set_rollback(True)
    return found, row


@pytest.mark.slow(reason="each value is stored, compiled and taken back")
@pytest.mark.both_engines  # SQLite keeps whatever it is given, PostgreSQL less of it
@pytest.mark.parametrize(("values", "step"), [(SHARP, 12), pytest.param(ALL, 18, marks=WHOLE)], ids=["sharp", "all"])
def test_a_spoilt_row_is_left_out_and_nobody_else_is_touched(fleet: Fleet, values: Sequence[Any], step: int) -> None:
    honest = of_globex(compile_snapshot(snapshot_of(fleet)))
    assert len(honest) > 5
    wrong, stored = [], 0
    for turn, value in enumerate(values):
        # Each value goes into some of the columns, into others than the value before it.
        for name, (write, legal) in [*COLUMNS.items()][turn % step :: step]:
            if legal(value) or (spoilt := spoil(write, value, fleet)) is None:
                continue
            stored += 1
            compilation, _ = spoilt
            if of_globex(compilation) != honest:
                wrong.append((name, value, "another customer's lines changed"))
            elif not compilation.left_out:
                wrong.append((name, value, "nothing was left out"))
    assert wrong == []
    assert stored > len(values) / 2


@pytest.mark.parametrize(
    ("column", "shapes"),
    first_of(
        2,
        [
            ("headers", SHAPES[::2]),
            ("redirect", SHAPES[1::2]),
            *((column, SHAPES) for column in ("headers", "redirect", "methods", "fixed_response")),
        ],
    ),
)
def test_a_json_column_of_the_wrong_form_spoils_its_own_route_only(
    fleet: Fleet, column: str, shapes: list[Any]
) -> None:
    honest = of_globex(compile_snapshot(snapshot_of(fleet)))
    route = Route.objects.get(name={"redirect": "moved", "fixed_response": "fixed"}.get(column, "hostile"))
    for shape in shapes:
        Route.objects.filter(pk=route.pk).update(**{column: shape})
        compilation = compile_snapshot(snapshot_of(fleet))
        assert of_globex(compilation) == honest, shape
        assert f"route-{route.pk}" in {finding.object_id for finding in compilation.left_out}, shape


def test_the_finding_names_the_row_and_what_to_do(fleet: Fleet) -> None:
    Route.objects.filter(name="hostile").update(path="/ } || { always_true")
    (finding,) = compile_snapshot(snapshot_of(fleet)).left_out
    assert finding.object_id == f"route-{Route.objects.get(name='hostile').pk}"
    assert finding.message.endswith(".")
