"""Verdicts as a collector would leave them, a clock that tests move on, and channels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.alerts.evaluate.evaluating import store
from apps.alerts.looking.watching import Watcher
from apps.alerts.models import Alert, ChannelState, Notification
from apps.alerts.sending import delivering
from apps.core.clock import now
from apps.definitions.models import AlertChannel, Backend, Pool, Server
from apps.definitions.services import save_object
from apps.fleet.models import Region
from apps.observe.collect import lease
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.services import store_verdicts
from apps.webhooks.signing import new_secret
from tests.smtp_sink import Sink, smtp_sink


@dataclass
class Installation:
    """An hour ago and on from there; `tick` evaluates. Somebody reads the nodes as long as it is `watched`."""

    at: datetime = field(default_factory=lambda: now() - timedelta(hours=1))
    watcher: Watcher = field(default_factory=Watcher)
    watched: bool = True

    def tick(self, seconds: float = 1, *, times: int = 1) -> None:
        """Time passes, and rules are evaluated."""
        (lease.share if self.watched else lease.leave)("test")
        for _ in range(times):
            self.at += timedelta(seconds=seconds)
            store(self.watcher.look(self.at), self.at)

    def verdict(self, kind: str, pk: int, of: Type, status: bool | None, reason: Reason, message: str = "") -> None:
        """What the collector says of an object from now on."""
        store_verdicts([Verdict(kind, pk, of, status, reason, message)], self.at)

    def pool(self, pool: Pool, *, down: bool = True, failing: tuple[Server, ...] = ()) -> None:
        """A pool without any server up, or with these failing and others up."""
        for server in failing:
            self.verdict("server", server.pk, Type.UP, False, Reason.CHECK_FAILS, "Last check: L4CON.")
        if down:
            self.verdict("pool", pool.pk, Type.HEALTHY, False, Reason.NO_SERVER_UP, "No server is up: a (L4CON).")
        else:
            self.verdict("pool", pool.pk, Type.HEALTHY, False, Reason.SOME_SERVERS_DOWN, "1 of 2 servers is down.")

    def healthy(self, *pools: Pool) -> None:
        """These pools and their servers are well."""
        for pool in pools:
            self.verdict("pool", pool.pk, Type.HEALTHY, True, Reason.ALL_SERVERS_UP, "All servers are up.")
            for server in Server.objects.filter(backend__pool=pool):
                self.verdict("server", server.pk, Type.UP, True, Reason.CHECK_PASSES, "Its check passes.")

    def deliver(self) -> None:
        """What the threads of the scheduler would do now, whatever was held back."""
        ChannelState.objects.update(not_before=None)
        for pk in delivering.due_channels():
            delivering.deliver(pk)

    def messages(self, channel: AlertChannel, event: str = "firing") -> list[dict[str, Any]]:
        """What was stored for a channel, the oldest first."""
        rows = Notification.objects.filter(channel=channel, event=event).order_by("id")
        return [json.loads(json.dumps(row.content)) for row in rows]


def make_pool(actor: Actor, name: str, *addresses: str, region: Region | None = None) -> Pool:
    """A pool with a server at each address, in the first region where none is named."""
    where = region or Region.objects.order_by("name").first()
    assert where is not None
    pool = Pool.objects.create(account=actor.account, name=name)
    backend = Backend.objects.create(account=actor.account, pool=pool, region=where)
    for number, address in enumerate(addresses, start=1):
        Server.objects.create(
            account=actor.account, backend=backend, name=f"{name}-{number}", address=address, port=8000 + pool.pk
        )
    return pool


def servers_of(pool: Pool) -> tuple[Server, ...]:
    """The servers of a pool by name."""
    return tuple(Server.objects.filter(backend__pool=pool).order_by("name"))


def hook(actor: Actor, url: str = "https://hooks.example/x", name: str = "hook", **more: Any) -> AlertChannel:
    """A channel of type webhook."""
    spec = {"type": "webhook", "url": url, "secret": new_secret(), **more}
    row: AlertChannel = save_object(actor=actor, kind="AlertChannel", name=name, spec=spec)
    return row


def rule(actor: Actor, name: str, **spec: Any) -> None:
    """A rule of the actor's account."""
    save_object(actor=actor, kind="AlertRule", name=name, spec=spec)


@contextmanager
def mailing(settings: Settings) -> Iterator[Sink]:
    """An installation whose mail goes to a sink."""
    with smtp_sink() as sink:
        settings.MAILS = True
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", sink.port
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        yield sink


def titles(actor: Actor) -> list[str]:
    """What is firing for the actor's account, the oldest first."""
    rows = Alert.objects.filter(account=actor.account, resolved_at=None).order_by("id")
    return list(rows.values_list("title", flat=True))
