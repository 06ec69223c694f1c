"""How soon people are told that a server is dead, and that it is well again: `--rounds 10`.

The demo's own processes; a server of a pool is ended and started again. A mail server and Alertmanager, both real, say
when they were told. Each round has channels of its own: a channel gets few messages in five minutes without delay.
Goals: the first message within 10 s, one for each channel, resolved within 30 s.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deploy.demo.ready import call
from tests.bench.tables import facts, table
from tests.e2e.alertmanager import Alertmanager, running_alertmanager
from tests.e2e.demo import RunningDemo, running_demo, until
from tests.smtp_sink import Sink, smtp_sink

FIRST_S, OVER_S = 10.0, 30.0
# After the first message, so long for a second one to come.
MORE_S = 5.0


def main() -> int:
    """End a server again and again; print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, smtp_sink() as sink, running_alertmanager(Path(folder)) as manager:
        url = f"smtp://127.0.0.1:{sink.port}"
        with running_demo(SPILLWAY_EMAIL_URL=url, SPILLWAY_CONSOLE_URL="https://console.example") as demo:
            found = [play(demo, sink, manager, number) for number in range(given.rounds)]
    print(facts())
    heads = ("what", "median s", "worst s", "goal s")
    names = ("dead: first mail", "dead: Alertmanager has it", "well: mail", "well: Alertmanager has none")
    goals = (FIRST_S, FIRST_S, OVER_S, OVER_S)
    rows = []
    for name, times, goal in zip(names, zip(*(times for times, _ in found), strict=True), goals, strict=True):
        ordered = sorted(times)
        rows.append((name, f"{ordered[len(ordered) // 2]:.1f}", f"{ordered[-1]:.1f}", f"{goal:.0f}"))
    print(table(heads, rows))
    most = max(count for _, count in found)
    print(f"{len(found)} rounds, at most {most} messages that say it in one channel")
    return int(most != 1 or max(times[0] for times, _ in found) > FIRST_S)


def play(demo: RunningDemo, sink: Sink, manager: Alertmanager, number: int) -> tuple[list[float], int]:
    """The four times of one round, and how many mails said it."""
    make_channels(demo, manager, number)
    assert until(lambda: api(demo, "GET", "alerts?state=firing")["items"] == [])
    assert until(lambda: manager.alerts() == [])
    sink.mails.clear()
    began = supervise(demo, "stop")
    times = since(began, lambda: bool(sink.mails), lambda: bool(manager.alerts()))
    time.sleep(MORE_S)
    said = len(sink.mails)
    began = supervise(demo, "start")
    times += since(began, lambda: any("Resolved" in each for each in sink.subjects), lambda: manager.alerts() == [])
    print(f"round {number}: {' '.join(f'{each:.1f}' for each in times)} s, {said} mail", file=sys.stderr, flush=True)
    return times, said


def since(began: float, *dones: Callable[[], bool]) -> list[float]:
    """Seconds until each is done."""
    found: dict[int, float] = {}
    while len(found) < len(dones):
        for number, done in enumerate(dones):
            if number not in found and done():
                found[number] = time.monotonic() - began
        if time.monotonic() - began > 180:
            raise TimeoutError("Nobody was told within three minutes.")
        time.sleep(0.05)
    return [found[number] for number in range(len(dones))]


def supervise(demo: RunningDemo, word: str) -> float:
    """Stop or start a server as supervisord does; when that began."""
    server = next(each for each in demo.topology.servers() if each.region == "us-central1")
    port = f"--port {server.port}"
    conf = demo.config.supervisor_conf.read_text()
    section = next(each for each in conf.split("[program:")[1:] if port in each)
    began = time.monotonic()
    command = [sys.executable, "-m", "supervisor.supervisorctl", "-c", str(demo.config.supervisor_conf)]
    done = subprocess.run([*command, word, section_name(conf, section)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return began


def section_name(conf: str, section: str) -> str:
    """A program as supervisord calls it: its group and its name."""
    name = section.partition("]")[0]
    for group in conf.split("[group:")[1:]:
        if name in group.partition("programs")[2].partition("\n")[0].replace("=", " ").replace(",", " ").split():
            return f"{group.partition(']')[0]}:{name}"
    return name


def make_channels(demo: RunningDemo, manager: Alertmanager, number: int) -> None:
    """New ones for this round; those before are told nothing any more."""
    kinds: dict[str, dict[str, Any]] = {
        "mail": {"type": "email", "to": ["ops@example.com"]},
        "prometheus": {"type": "alertmanager", "url": manager.url},
    }
    objects = [{"kind": "AlertChannel", "name": f"{name}-{number}", "spec": spec} for name, spec in kinds.items()]
    if number:
        objects += [
            {"kind": "AlertChannel", "name": f"{name}-{number - 1}", "spec": {**spec, "enabled": False}}
            for name, spec in kinds.items()
        ]
    api(demo, "PUT", "apply", {"objects": objects})


def api(demo: RunningDemo, method: str, path: str, body: Any = None) -> Any:
    """One call as the operator."""
    headers = {"Authorization": f"Bearer {demo.keys['operator_token']}", "Content-Type": "application/json"}
    text = json.dumps(body) if body is not None else ""
    status, answer = call(f"{demo.config.console_url}/api/v1/{path}", method, headers=headers, body=text)
    assert status < 300, f"{method} {path}: {status} {answer}"
    return json.loads(answer)


if __name__ == "__main__":
    sys.exit(main())
