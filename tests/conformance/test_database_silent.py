"""A database host that says nothing: nobody waits for it longer than a moment, and nobody at all for the next one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.db.backends.postgresql.base import DatabaseWrapper as Djangos
from django.db.utils import ConnectionHandler

from apps.core import unavailable
from controlplane import database
from controlplane.postgresql import base
from tests.ports import spare_port

pytestmark = pytest.mark.slow(reason="nobody answers, which only a time-out shows")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port whose queue is full: whatever else comes is dropped without a word, as by a host whose cable is out."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        waiting: list[socket.socket] = []
        for _ in range(4):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(server.getsockname())
        yield server.getsockname()[1]
        for each in waiting:
            each.close()


@pytest.fixture
def settings_of(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """As a web process has them."""
    monkeypatch.setenv("SPILLWAY_PROCESS", "web")
    monkeypatch.setattr(base, "silence", base.Silence())
    return database.database(f"postgresql://u@127.0.0.1:{silent_port}/s")


def refused(settings: dict[str, Any]) -> OperationalError:
    """What a request is told."""
    connection = ConnectionHandler({"default": settings})["default"]
    with pytest.raises(OperationalError) as caught:
        connection.ensure_connection()
    said = unavailable.unavailable(caught.value)
    assert said is not None
    assert (said.status, said.detail) == (503, unavailable.AWAY)
    return caught.value


def test_the_next_requests_do_not_even_knock(
    settings_of: dict[str, Any], silent_port: int, monkeypatch: pytest.MonkeyPatch, django_db_blocker: Any
) -> None:
    knocks: list[object] = []
    knock = socket.create_connection

    def counted(*words: Any) -> socket.socket:
        knocks.append(words)
        return knock(*words)

    monkeypatch.setattr(socket, "create_connection", counted)
    with django_db_blocker.unblock():
        assert all(base.SILENT in str(refused(settings_of)) for _ in range(3))
        assert knocks == [(("127.0.0.1", silent_port), database.PATIENCE["web"].silent_s)]
        monkeypatch.setattr(base.silence, "holds", lambda *_: False)
        refused(settings_of)
    assert len(knocks) == 2, "after a moment it is tried again"


def test_control_as_django_has_it_each_request_waits_for_the_host(
    settings_of: dict[str, Any], monkeypatch: pytest.MonkeyPatch, django_db_blocker: Any
) -> None:
    asked: list[object] = []
    connect = psycopg.connect

    def counted(**words: Any) -> Any:
        asked.append(words)
        return connect(**words)

    monkeypatch.setattr(psycopg, "connect", counted)
    wrapper = Djangos({**ConnectionHandler({"default": settings_of})["default"].settings_dict})
    with django_db_blocker.unblock():
        for _ in range(2):
            with pytest.raises(OperationalError) as caught:
                wrapper.ensure_connection()
            assert base.SILENT not in str(caught.value)
        assert len(asked) == 2, "each of them waits as long as libpq does"
        refused(settings_of)
    assert len(asked) == 2, "ours does not even begin"


def test_a_host_that_refuses_is_no_silent_one(settings_of: dict[str, Any], django_db_blocker: Any) -> None:
    port = spare_port()
    with django_db_blocker.unblock():
        error = refused({**settings_of, "PORT": port})
    assert base.SILENT not in str(error)
    assert not base.silence.holds(("127.0.0.1", port), 0.0)


@pytest.mark.parametrize(
    ("host", "port", "known"),
    [
        ("db.example", "5433", [("db.example", 5433)]),
        ("a,b", "5433", [("a", 5433), ("b", 5433)]),
        ("a,b", "5432,5433", [("a", 5432), ("b", 5433)]),
        ("a,b", "5432,5433,5434", []),
        ("/run/pg", "5433", []),
        ("a,/run/pg", "5433", []),
        ("", "5433", []),
        ("@abstract", "5433", []),
    ],
)
def test_only_hosts_that_are_reached_by_tcp_are_knocked_at(host: str, port: str, known: list[tuple[str, int]]) -> None:
    assert base._hosts({"host": host, "port": port}) == known


def test_of_several_hosts_a_silent_one_is_asked_last(
    settings_of: dict[str, Any], silent_port: int, monkeypatch: pytest.MonkeyPatch, django_db_blocker: Any
) -> None:
    asked: list[tuple[object, object]] = []

    def counted(**words: Any) -> Any:
        asked.append((words["host"], words["port"]))
        raise psycopg.OperationalError("the session is read-only")

    monkeypatch.setattr(psycopg, "connect", counted)
    with socket.socket() as standby, django_db_blocker.unblock():
        standby.bind(("127.0.0.1", 0))
        standby.listen()
        other = standby.getsockname()[1]
        several = {**settings_of, "HOST": "127.0.0.1,127.0.0.1", "PORT": f"{silent_port},{other}"}
        refused(several)
        refused({**several, "PORT": f"{other},{silent_port}"})
    assert asked == [("127.0.0.1,127.0.0.1", f"{other},{silent_port}")] * 2
