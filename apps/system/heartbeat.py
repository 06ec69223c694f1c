"""Each process says every fifteen seconds that it lives, from a thread of its own, on a connection it gives back."""

from __future__ import annotations

import logging
import os
import threading
from datetime import timedelta

from django import db

from apps.core.clock import database_now
from apps.system import http_times, recent_errors
from apps.system.http_times import HERE
from apps.system.models import Process
from apps.system.version import version

logger = logging.getLogger(__name__)
EVERY_S = 15.0
# Three beats: a process that missed so many is away.
MISSED = timedelta(seconds=45)
FORGOTTEN = timedelta(days=1)


def begin(kind: str, queues: str = "") -> None:
    """Beat until this process ends."""
    thread = threading.Thread(target=_beat_for_ever, args=(kind, queues), name="heartbeat", daemon=True)
    thread.start()


def beat(kind: str, queues: str = "", *, first: bool = False) -> None:
    """Say once that this process lives; with the first one it begins. Raises django.db.Error."""
    instant = database_now()
    told = {"queues": queues, "version": version(), "heard_at": instant, "errors": recent_errors.newest()}
    Process.objects.update_or_create(
        kind=kind,
        host=HERE,
        pid=os.getpid(),
        defaults=told | ({"began_at": instant} if first else {}),
        create_defaults=told | {"began_at": instant},
    )


def forget() -> None:
    """Processes that nobody heard of for a day."""
    Process.objects.filter(heard_at__lt=database_now() - FORGOTTEN).delete()


def _beat_for_ever(kind: str, queues: str) -> None:
    pause, first = threading.Event(), True
    while True:
        try:
            beat(kind, queues, first=first)
            first = False
        except Exception as error:  # noqa: BLE001 - whatever it is, the next beat may come
            logger.warning("nobody hears of this process for now: %s", type(error).__name__)
        finally:
            db.connections.close_all()
        for _ in range(3):  # counts travel more often, so that little is lost with a process
            http_times.flush()
            pause.wait(EVERY_S / 3)
