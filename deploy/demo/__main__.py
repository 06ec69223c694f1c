"""`python -m deploy.demo up`, `down`, `status`; `make up` and `make down` call it."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from types import FrameType

from deploy.demo import ready
from deploy.demo.config import PYTHON, ROOT, DemoConfig, remember, running
from deploy.demo.programs import django_environment, write_configuration
from deploy.demo.secrets_file import Secrets, read_or_create, write_private
from deploy.demo.supervision import (
    MARK,
    CannotStart,
    check_ports,
    check_tools,
    haproxies_of,
    only_one,
    processes,
    start,
    stop,
    supervisor_pid,
)
from deploy.demo.topology import DemoTopology
from deploy.demo.traffic import sentences, set_traffic, traffic_of


def say(text: str) -> None:
    """One line for the person who waits."""
    print(text, flush=True)


def manage(config: DemoConfig, secrets: Secrets, *command: str, stdin: str = "") -> str:
    """Run a management command with the demo's environment; returns what it printed. Raises CannotStart."""
    environment = os.environ | django_environment(config, secrets) | {MARK: str(config.demo)}
    line = [PYTHON, "manage.py", *command]
    done = subprocess.run(line, cwd=ROOT, env=environment, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-12:])
        raise CannotStart(f"manage.py {' '.join(command)} failed:\n{last}")
    return done.stdout


def prepare(topology: DemoTopology, secrets: Secrets) -> None:
    """Keys, database, operator: everything that must stand before the first process."""
    config = topology.config
    remote = [node.name for node in topology.nodes() if node.url.startswith("https://")]
    say("Bringing keys and database up to date …")
    manage(config, secrets, "issue_certificates", "--out", str(config.demo / "pki"), "--name", *remote)
    manage(config, secrets, "migrate", "--no-input")
    write_configuration(topology, secrets)


def fill(topology: DemoTopology, secrets: Secrets) -> dict[str, str]:
    """Load the tutorial where it is new or its ports moved; returns the two tokens."""
    config = topology.config
    tokens = bootstrap(config, secrets)
    text = json.dumps(topology.document, sort_keys=True)
    applied, digest = config.demo / "applied.sha256", hashlib.sha256(text.encode()).hexdigest()
    # Applied once: a person's own changes to the tutorial's objects outlive a restart.
    if not applied.exists() or applied.read_text() != digest:
        say("Applying deploy/examples/tutorial.yaml …")
        ready.apply(topology, tokens["operator_token"])
        applied.write_text(digest)
    return tokens


def bootstrap(config: DemoConfig, secrets: Secrets) -> dict[str, str]:
    """A token each for the operator and the first customer; those of an earlier start where they still work."""
    kept = config.demo / "tokens.json"
    if kept.exists():
        tokens: dict[str, str] = json.loads(kept.read_text())
        if ready.is_welcome(config, tokens["operator_token"]):
            return tokens
    command = ["bootstrap", "--username", secrets.username, "--tokens", "--customer", "acme"]
    tokens = json.loads(manage(config, secrets, *command, stdin=secrets.password + "\n"))
    write_private(kept, tokens)
    (config.demo / "applied.sha256").unlink(missing_ok=True)
    return tokens


def come_up(topology: DemoTopology, secrets: Secrets, supervisor: subprocess.Popen[bytes]) -> None:
    """From the first process to traffic on every node; writes var/dev.json."""
    config = topology.config

    def alive() -> bool:
        return supervisor.poll() is None

    ready.wait_for("The console", lambda: ready.call(f"{config.console_url}/healthz")[0] == 200, alive)
    tokens = fill(topology, secrets)
    for node in topology.nodes():
        ready.wait_for(f"Node {node.name}", partial(ready.serves, topology, node), alive)
    ready.wait_for("/readyz", lambda: ready.call(f"{config.console_url}/readyz")[0] == 200, alive)
    person = {"url": config.console_url, "username": secrets.username, "password": secrets.password}
    config.env_sh.touch(mode=0o600)
    config.env_sh.write_text(ready.shell(topology, tokens))
    write_private(config.dev_json, person | tokens | {"regions": ready.regions(topology)})


def up(*, detach: bool) -> int:
    """Start everything and stay with it, or leave it running."""
    started = time.monotonic()
    config = DemoConfig()
    os.umask(0o077)  # database, logs, sockets: the owner's alone
    config.make_directories()
    for sign in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, _interrupt)
    with only_one(config):
        topology, secrets = DemoTopology(config), read_or_create(config.demo / "secrets.json")
        check_tools()
        check_ports(topology)
        remember(config)
        config.dev_json.unlink(missing_ok=True)  # who waits for it waits for this start
        prepare(topology, secrets)
        say("Starting two regions …")
        supervisor = start(config)
        try:
            come_up(topology, secrets, supervisor)
            say(f"{ready.summary(topology, secrets)}  Ready after {time.monotonic() - started:.0f} s.")
            if detach:
                say("  Running in the background: `make down` stops it.\n")
                return 0
            say("  Ctrl-C stops everything.\n")
            return supervisor.wait()
        except KeyboardInterrupt:
            say("\nStopping …")
        except (ready.NotReady, CannotStart) as error:
            say(f"\n{error}\nLogs: {config.demo / 'logs'}")
            stop(config)
            return 1
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sign, signal.SIG_IGN)  # a second Ctrl-C must not leave half of it behind
        stop(config)
        return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def down() -> int:
    """End a demo that runs in the background, or what an earlier one left."""
    say("Stopped." if stop(running()) else "Spillway does not run here.")
    return 0


def status() -> int:
    """Say whether it runs; exit code 0 when it does, 3 when not, as init scripts do."""
    config = running()
    pid = supervisor_pid(config)
    say(f"Runs at {config.console_url}, {len(processes(config))} processes." if pid else "Spillway does not run here.")
    return 0 if pid else 3


def traffic(region: str, rate: float | None) -> int:
    """Set what the clients of one region send, and say what will happen; without a region say what they send now."""
    config = running()
    if not supervisor_pid(config):
        say("Spillway does not run here: `make up` starts it.")
        return 1
    try:
        rates = traffic_of(config) if rate is None or not region else set_traffic(config, region, rate)
    except ValueError as error:
        say(str(error))
        return 1
    for sentence in sentences(DemoTopology(config), rates):
        say(sentence)
    say(f"Watch it: {config.console_url}/overflow")
    return 0


def kill(node: str) -> int:
    """Kill one node's HAProxy, as a crash would; its agent starts it again."""
    config = running()
    found = haproxies_of(config, node)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    names = ", ".join(each.name for each in DemoTopology(config).nodes())
    say(f"Killed HAProxy of {node}." if found else f"No HAProxy of {node} runs here; nodes are {names}.")
    return 0 if found else 1


def run_manage(arguments: list[str]) -> int:
    """Become manage.py with the demo's database and secrets."""
    config = running()
    config.make_directories()
    environment = os.environ | django_environment(config, read_or_create(config.demo / "secrets.json"))
    os.chdir(ROOT)
    os.execve(PYTHON, [PYTHON, "manage.py", *arguments], environment)  # noqa: S606 - no shell wanted


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m deploy.demo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start everything and stay with it")
    starting.add_argument("--detach", action="store_true", help="leave it running in the background")
    commands.add_parser("down", help="end what runs in the background")
    commands.add_parser("status", help="say whether it runs")
    raising = commands.add_parser("traffic", help="client traffic of one region, in requests/s")
    raising.add_argument("region", nargs="?", default="", help="nothing: say what every region's clients send")
    raising.add_argument("rate", nargs="?", type=float, help="requests/s")
    killing = commands.add_parser("kill", help="kill one node's HAProxy, as a crash would")
    killing.add_argument("node")
    managing = commands.add_parser("manage", help="manage.py with the demo's database and secrets")
    managing.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        match options.command:
            case "up":
                return up(detach=options.detach)
            case "down":
                return down()
            case "traffic":
                return traffic(options.region, options.rate)
            case "kill":
                return kill(options.node)
            case "manage":
                return run_manage(options.arguments)
        return status()
    except CannotStart as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("\nStopped before anything was started.")
        return 130


if __name__ == "__main__":
    sys.exit(main())
