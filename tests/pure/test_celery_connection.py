"""A worker that loses Redis goes on: what it has not acknowledged is put back only where there is a place for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kombu.transport import redis

from controlplane.celery import Unacknowledged


def messages(client: object, put_back: list[str]) -> Any:
    """One message that was delivered over a connection, which is gone where its client is None."""

    class Channel(SimpleNamespace):
        def conn_or_acquire(self, _: object) -> Any:
            return self.connection.client.open()  # what is gone has no `open`

    made: Any = Unacknowledged.__new__(Unacknowledged)
    made.channel = Channel(connection=SimpleNamespace(client=client))
    made._delivered = {"tag": "a wake-up"}
    made.restore_by_tag = lambda tag, **_: put_back.append(tag)
    return made


def test_workers_use_it() -> None:
    assert redis.Channel.QoS is Unacknowledged


def test_messages_are_put_back_where_redis_answers() -> None:
    class Open:
        def open(self) -> Any:
            return self

        def __enter__(self) -> object:
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing to close."""

    put_back: list[str] = []
    messages(Open(), put_back).restore_unacked()
    assert put_back == ["tag"]


def test_nothing_is_put_back_over_a_connection_that_is_gone() -> None:
    put_back: list[str] = []
    assert messages(None, put_back).restore_unacked() == []
    assert put_back == []


def test_control_kombu_itself_fails_there_and_the_worker_would_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Unacknowledged, "restore_unacked", redis.QoS.restore_unacked)
    with pytest.raises(AttributeError):
        messages(None, []).restore_unacked()
