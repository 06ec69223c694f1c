"""How gunicorn serves the pages and the API: `gunicorn --config python:controlplane.web_server`.

Everything is loaded before it listens. Whoever asks earlier is refused at once and goes to another console; if it
listened first, they would wait for as long as the loading takes.
"""

from __future__ import annotations

from apps.system import garbage

wsgi_app = "controlplane.wsgi:application"
preload_app = True


def when_ready(_: object) -> None:
    """What is loaded is not looked through for garbage with pages."""
    garbage.leave_what_is_loaded()


def post_worker_init(_: object) -> None:
    """Threads do not survive the fork, so each worker begins its own heartbeat."""
    from apps.system import heartbeat

    heartbeat.begin("web")
