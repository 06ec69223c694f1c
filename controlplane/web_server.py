"""How gunicorn serves the pages and the API: `gunicorn --config python:controlplane.web_server`.

Everything is loaded before it listens. Whoever asks earlier is refused at once and goes to another console; if it
listened first, they would wait for as long as the loading takes.
"""

from __future__ import annotations

import gc

wsgi_app = "controlplane.wsgi:application"
preload_app = True


def when_ready(_: object) -> None:
    """What is loaded stays: looking through it for garbage took a tenth of a second of a page, again and again.

    The rest is looked through often and a little at a time. Over all pages with 1 000 pools and accounts that takes
    13 ms of a page at most; with thresholds of 50 000 and 20, 132 ms at most and nearly twice as much in all.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 5, 200)


def post_worker_init(_: object) -> None:
    """Threads do not survive the fork, so each worker begins its own heartbeat."""
    from apps.system import heartbeat

    heartbeat.begin("web")
