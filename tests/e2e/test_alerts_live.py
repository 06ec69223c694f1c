"""A server fails: within ten seconds one mail and one alert in Alertmanager; within thirty after it is well, their end.

The demo's own processes: HAProxy's checks, the collector, the scheduler that evaluates and sends; a real SMTP server
and a real Alertmanager.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.ready import call
from tests.e2e.alertmanager import Alertmanager, running_alertmanager
from tests.e2e.demo import RunningDemo, running_demo, until
from tests.smtp_sink import Sink, smtp_sink

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(900)]

# The goals, of a machine that has nothing else to do; HAProxy's own check takes two to six of the first.
FIRST_S, OVER_S = 10.0, 30.0
BUSY = 3


def api(demo: RunningDemo, method: str, path: str, body: Any = None) -> Any:
    """One call as the operator."""
    headers = {"Authorization": f"Bearer {demo.keys['operator_token']}", "Content-Type": "application/json"}
    text = json.dumps(body) if body is not None else ""
    status, answer = call(f"{demo.config.console_url}/api/v1/{path}", method, headers=headers, body=text)
    assert status < 300, f"{method} {path}: {status} {answer}"
    return json.loads(answer)


def turn(demo: RunningDemo, mode: str) -> None:
    """The first two machines of us-central1 answer so from now on."""
    machines = [each for each in demo.topology.servers() if each.region == "us-central1"][:2]
    for machine in machines:
        url = f"http://127.0.0.1:{machine.port}/control"
        assert call(url, "PUT", body=json.dumps({"mode": mode}))[0] == 200


def after(done: Callable[[], bool]) -> float:
    """Seconds until `done`."""
    began = time.monotonic()
    assert until(done, 120)
    return time.monotonic() - began


def make_channels(demo: RunningDemo, manager: Alertmanager) -> None:
    """Mail, and Alertmanager."""
    mail = {"type": "email", "to": ["ops@example.com"]}
    channels = {"mail": mail, "prometheus": {"type": "alertmanager", "url": manager.url}}
    objects = [{"kind": "AlertChannel", "name": name, "spec": spec} for name, spec in channels.items()]
    api(demo, "PUT", "apply", {"objects": objects})


def watch_one_failure(demo: RunningDemo, sink: Sink, manager: Alertmanager) -> tuple[float, float]:
    """Seconds until the first mail, and from the machines' recovery until the last."""
    turn(demo, "down")
    first = after(lambda: len(sink.mails) > 0)
    assert until(lambda: len(manager.alerts()) == 1, 30)
    time.sleep(5)
    assert len([subject for subject in sink.subjects if "Resolved" not in subject]) == 1, sink.subjects
    turn(demo, "ok")
    over = after(lambda: any("Resolved" in subject for subject in sink.subjects))
    assert until(lambda: manager.alerts() == [], 30)
    return first, over


def test_a_failing_server_is_one_message_in_time_and_one_when_it_is_over(tmp_path: Path) -> None:
    with smtp_sink() as sink, running_alertmanager(tmp_path) as manager:
        url = f"smtp://127.0.0.1:{sink.port}"
        with running_demo(SPILLWAY_EMAIL_URL=url, SPILLWAY_CONSOLE_URL="https://console.example") as demo:
            make_channels(demo, manager)
            assert until(lambda: api(demo, "GET", "alerts?state=firing")["items"] == [])
            sink.mails.clear()
            first, over = watch_one_failure(demo, sink, manager)
    assert first < FIRST_S * BUSY
    assert over < OVER_S * BUSY
    assert "https://console.example/alerts/" in sink.mails[0].text
    print(f"first message after {first:.1f} s, resolved after {over:.1f} s")
