"""PUSH + OBSERVE on the node, the start: `python -m apps.agent --name us-1 --state-dir DIR --unix PATH`."""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import sys
import threading
import types
from pathlib import Path

from apps.agent.drift import find_drift
from apps.agent.events import Events
from apps.agent.node import Node
from apps.agent.proxy import Proxy
from apps.agent.server import Door, open_tls, open_unix
from apps.agent.settings import Settings, default_user

TICK = 0.2


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="spillway-agent", description="Owns the HAProxy of one node.")
    parser.add_argument("--name", required=True, help="the node's name, for logs and certificates")
    parser.add_argument("--state-dir", required=True, type=Path, help="private directory for releases, sockets, state")
    parser.add_argument("--address", default="127.0.0.1", help="address of listeners without a static one")
    parser.add_argument("--port-offset", default=0, type=int, help="added to the ports of such listeners")
    parser.add_argument("--unix", type=Path, help="listen on this Unix socket")
    parser.add_argument("--listen", help="listen on HOST:PORT with mutual TLS")
    parser.add_argument("--ca", help="PEM: authority of the control plane's certificate")
    parser.add_argument("--certificate", help="PEM: this node's certificate")
    parser.add_argument("--key", help="PEM: its key")
    parser.add_argument("--haproxy", default="haproxy", help="the binary")
    parser.add_argument(
        "--user",
        default=default_user(),
        help="when started as root: the user that haproxy becomes, haproxy where there is one; empty for root",
    )
    parser.add_argument("--soak", default=30.0, type=float, help="seconds until a release is the last known good")
    parser.add_argument("--reload-gap", default=2.0, type=float, help="least seconds between two reloads")
    parser.add_argument("--confirm-timeout", default=10.0, type=float, help="seconds that a new worker has to answer")
    parser.add_argument("--drift-every", default=10.0, type=float, help="seconds between two looks for drift")
    parser.add_argument("--leave-running", action="store_true", help="do not end haproxy when the agent ends")
    parser.add_argument("--stop", action="store_true", help="end the haproxy of this state directory and leave")
    return parser.parse_args(words)


def settings_from(words: argparse.Namespace) -> Settings:
    """Settings, or an end with sentences that say what is wrong."""
    settings = Settings(
        name=words.name,
        state_dir=words.state_dir.absolute(),
        address=words.address,
        port_offset=words.port_offset,
        haproxy=words.haproxy,
        user=words.user,
        drift_every=words.drift_every,
        soak=words.soak,
        reload_gap=words.reload_gap,
        confirm_timeout=words.confirm_timeout,
        leave_running=words.leave_running,
    )
    problems = settings.problems()
    if not words.stop and bool(words.unix) == bool(words.listen):
        problems.append("Give either --unix or --listen.")
    if words.listen and not (words.ca and words.certificate and words.key):
        problems.append("--listen needs --ca, --certificate and --key.")
    if problems:
        sys.exit("\n".join(problems))
    return settings


def take_lock(state_dir: Path) -> int:
    """One agent per state directory; the lock ends with the process, however it ends."""
    state_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(state_dir / "agent.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"Another agent owns {state_dir}.")
    return descriptor


def open_door(words: argparse.Namespace, node: Node) -> Door:
    """The socket that was asked for."""
    if words.unix:
        return open_unix(words.unix.absolute(), node)
    host, _, port = words.listen.rpartition(":")
    return open_tls((host.strip("[]"), int(port)), node, words.ca, words.certificate, words.key)


def watch(node: Node, ended: threading.Event) -> None:
    """Keep haproxy alive, with a back-off, and look for drift."""
    pause, until_drift = TICK, node.settings.drift_every
    while not ended.wait(pause):
        try:
            well = node.tend()
            until_drift -= pause
            if until_drift <= 0:
                until_drift = node.settings.drift_every
                find_drift(node)
        except Exception as error:  # noqa: BLE001 — a watcher that dies watches nothing
            node.events.add("error", f"watching: {error!r}")
            well = False
        pause = TICK if well else min(pause * 2, 10.0)


def main(words: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT."""
    given = parse(words)
    settings = settings_from(given)
    os.umask(0o077)
    lock = take_lock(settings.state_dir)
    if given.stop:
        Proxy(settings, settings.state_dir / "live").stop()
        return 0
    events = Events()
    node = Node(settings, events)
    node.recover()
    door = open_door(given, node)
    ended = threading.Event()

    def end(_number: int, _frame: types.FrameType | None) -> None:
        ended.set()
        threading.Thread(target=door.shutdown, daemon=True).start()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    threading.Thread(target=watch, args=(node, ended), name="watch", daemon=True).start()
    events.add("state", f"{settings.name} listens on {given.unix or given.listen}")
    door.serve_forever(poll_interval=0.2)
    node.close()
    os.close(lock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
