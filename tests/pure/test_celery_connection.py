"""A worker that loses Redis goes on: what becomes of its messages is said only where somebody hears it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kombu.transport import redis

from controlplane.celery import Unacknowledged


def messages(connection: object, put_back: list[str]) -> Any:
    """One message that was delivered over a connection, which is gone where there is none, or its client is None."""

    class Channel(SimpleNamespace):
        def conn_or_acquire(self, _: object) -> Any:
            return self.connection.client.open()  # what is gone has no `open`

    def put(tag: str, *_: object, **__: object) -> None:
        made.channel.conn_or_acquire(None)
        put_back.append(tag)

    made: Any = Unacknowledged.__new__(Unacknowledged)
    made.channel = Channel(connection=connection)
    made._delivered = {"tag": "a wake-up"}
    made.restore_by_tag = put
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
    messages(SimpleNamespace(client=Open()), put_back).restore_unacked()
    assert put_back == ["tag"]


Done = Callable[[Any], object]
GONE = [None, SimpleNamespace(client=None)]
WAYS: list[Done] = [
    lambda unacknowledged: unacknowledged.restore_unacked(),
    lambda unacknowledged: unacknowledged.ack("tag"),
    lambda unacknowledged: unacknowledged.reject("tag"),
    lambda unacknowledged: unacknowledged.reject("tag", requeue=True),
]


@pytest.mark.parametrize("connection", GONE)
@pytest.mark.parametrize("done", WAYS)
def test_nobody_is_told_over_a_connection_that_is_gone(done: Done, connection: object) -> None:
    put_back: list[str] = []
    assert not done(messages(connection, put_back))
    assert put_back == []


@pytest.mark.parametrize("connection", GONE)
@pytest.mark.parametrize("done", WAYS)
def test_control_kombu_itself_fails_there_and_the_worker_would_end(
    done: Done, connection: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Unacknowledged, "_is_gone", False)
    with pytest.raises(AttributeError):
        done(messages(connection, []))
