"""The start: `python -m apps.agent --name us-1 --state-dir DIR --unix PATH`, or `enroll URL --token TOKEN` before."""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import ipaddress
import json
import os
import re
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

from apps.agent.check.trial_run import end_left_over
from apps.agent.events import Events
from apps.agent.identity.enrolling import enroll
from apps.agent.identity.store import Identity, server_context
from apps.agent.node import Node
from apps.agent.process.drift import find_drift
from apps.agent.process.proxy import Proxy
from apps.agent.push import Push
from apps.agent.recovery import recover
from apps.agent.server import HTTPServer, listen_tls, listen_unix
from apps.agent.settings import Settings, default_user
from apps.agent.static_ips.addresses import Addresses
from apps.agent.tending import tend

TICK = 0.2


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="spillway-agent", description="Run the HAProxy of one node.")
    parser.add_argument("--name", default="", help="the node's name; default: that of its enrolment")
    parser.add_argument("--state-dir", required=True, type=Path, help="private directory for releases, sockets, state")
    parser.add_argument("--address", default="", help="address of listeners without a static IP; default: as --name")
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
        help="when started as root: the user that haproxy switches to; default: haproxy, if it exists; empty for root",
    )
    parser.add_argument("--soak", default=30.0, type=float, help="seconds until a release is the last known good")
    parser.add_argument("--reload-gap", default=2.0, type=float, help="minimum seconds between two reloads")
    parser.add_argument(
        "--check-timeout",
        default=15.0,
        type=float,
        help="minimum time limit, in seconds, of haproxy -c and the trial start; larger bundles get more",
    )
    parser.add_argument(
        "--confirm-timeout",
        default=15.0,
        type=float,
        help="minimum seconds that a new worker has to answer; larger bundles get more",
    )
    parser.add_argument("--drift-every", default=10.0, type=float, help="seconds between two drift checks")
    parser.add_argument(
        "--log-megabytes",
        default=1024,
        type=int,
        help="maximum disk space for compressed request lines that the console has not fetched yet; oldest go first",
    )
    parser.add_argument("--leave-running", action="store_true", help="keep haproxy running when the agent stops")
    parser.add_argument(
        "--resolver",
        default=[],
        type=name_server,
        action="append",
        metavar="ADDRESS[:PORT]",
        help="a name server for servers' names; repeat for more; default: those of /etc/resolv.conf",
    )
    parser.add_argument("--interface", default="", help="interface for VRRP's static IPs; default: that of --address")
    parser.add_argument("--bgp-as", default=0, type=int, help="AS number by which this node announces static IPs")
    parser.add_argument(
        "--bgp-neighbour", default=[], type=neighbour, action="append", metavar="AS@ADDRESS", help="a BGP router"
    )
    parser.add_argument("--bgp-password-file", type=Path, help="password of the sessions with the routers (TCP MD5)")
    parser.add_argument("--keepalived", default="keepalived", help="the binary")
    parser.add_argument("--bird", default="bird", help="the binary")
    parser.add_argument("--drain", action="store_true", help="hand over the static IPs, keep serving, and exit")
    parser.add_argument("--undrain", action="store_true", help="hold static IPs again, and exit")
    parser.add_argument("--stop", action="store_true", help="stop every haproxy of this state directory, and exit")
    return with_enrolment(parser.parse_args(words))


def with_enrolment(words: argparse.Namespace) -> argparse.Namespace:
    """What no flag says is as the node was enrolled: its name, address, and where it listens."""
    facts = Identity(words.state_dir.absolute()).facts()
    words.name = words.name or facts.get("name", "")
    words.address = words.address or facts.get("address", "127.0.0.1")
    if not words.unix:
        words.listen = words.listen or facts.get("listen")
    return words


def neighbour(word: str) -> tuple[int, str]:
    """`65000@10.0.0.1` → (65000, "10.0.0.1")."""
    number, _, address = word.partition("@")
    if not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{word!r} is not AS@ADDRESS, such as 65000@10.0.0.1")
    try:
        return int(number), str(ipaddress.ip_address(address))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{address!r} is not an IP address") from None


def name_server(word: str) -> tuple[str, int]:
    """`192.0.2.53` → ("192.0.2.53", 53); `[2001:db8::53]:5353` → ("2001:db8::53", 5353)."""
    found = re.fullmatch(r"\[(.+)\]:(\d{1,5})|([^:]+):(\d{1,5})|(.+)", word)
    groups = found.groups() if found else ()
    address, port = next(filter(None, groups[::2]), ""), next(filter(None, groups[1::2]), "53")
    try:
        return str(ipaddress.ip_address(address)), int(port)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{word!r} is not an address of a name server, such as 192.0.2.53:53"
        ) from None


def interface_of(address: str) -> str:
    """The interface that has the address, as `ip` says; empty where none has, or where there is no `ip`."""
    try:
        command = ["ip", "-json", "address", "show", "to", address]
        rows = json.loads(subprocess.run(command, capture_output=True, timeout=5, check=False).stdout or b"[]")
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    names = [str(row["ifname"]) for row in rows if row.get("ifname")]
    return names[0] if names else ""


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
        check_timeout=words.check_timeout,
        confirm_timeout=words.confirm_timeout,
        leave_running=words.leave_running,
        keepalived=words.keepalived,
        bird=words.bird,
        interface=words.interface,
        bgp_as=words.bgp_as,
        bgp_neighbours=tuple(words.bgp_neighbour),
        bgp_password_file=words.bgp_password_file,
        resolvers=tuple(words.resolver),
        log_megabytes=words.log_megabytes,
    )
    if not settings.interface and settings.own_ip is not None:
        settings = dataclasses.replace(settings, interface=interface_of(str(settings.own_ip)))
    problems = settings.problems()
    no_server = words.stop or words.drain or words.undrain
    if not no_server and bool(words.unix) == bool(words.listen):
        problems.append("Give either --unix or --listen.")
    if not words.name:
        problems.append("Give --name, or enroll this node first.")
    given = [words.ca, words.certificate, words.key]
    if words.listen and not all(given) and (any(given) or not Identity(settings.state_dir).exists):
        problems.append("--listen needs --ca, --certificate and --key, or an enrolled node: spillway-agent enroll.")
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


def set_maintenance(settings: Settings, on: bool) -> int:
    """Leave word for the health watchdog, beside an agent that runs; addresses move within three seconds."""
    if on:
        settings.state_dir.mkdir(parents=True, exist_ok=True)
        settings.maintenance.touch()
    else:
        settings.maintenance.unlink(missing_ok=True)
    return 0


def listen(words: argparse.Namespace, push: Push) -> HTTPServer:
    """The socket that was asked for."""
    if words.unix:
        return listen_unix(words.unix.absolute(), push)
    host, _, port = words.listen.rpartition(":")
    where = (host.strip("[]"), int(port))
    if words.certificate:
        context = server_context(words.ca, words.certificate, words.key)
        return listen_tls(where, push, lambda: context)
    identity = Identity(push.node.settings.state_dir)
    return listen_tls(where, push, identity.context, identity)


def watch(node: Node, ended: threading.Event) -> None:
    """Keep haproxy alive, with a back-off, and look for drift."""
    pause, until_drift = TICK, node.settings.drift_every
    while not ended.wait(pause):
        try:
            well = tend(node)
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
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["enroll"]:
        return enroll(words[1:])
    given = parse(words)
    settings = settings_from(given)
    os.umask(0o077)
    if given.drain or given.undrain:
        return set_maintenance(settings, given.drain)
    lock = take_lock(settings.state_dir)
    if given.stop:
        Addresses(settings, settings.state_dir / "live").stop()
        Proxy(settings, settings.state_dir / "live").stop()
        end_left_over(settings)
        return 0
    events = Events()
    node = Node(settings, events)
    node.log.start()
    recover(node)
    server = listen(given, Push(node))
    ended = threading.Event()

    def end(_number: int, _frame: types.FrameType | None) -> None:
        ended.set()
        threading.Thread(target=server.shutdown, daemon=True).start()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    threading.Thread(target=watch, args=(node, ended), name="watch", daemon=True).start()
    events.add("state", f"{settings.name} listens on {given.unix or given.listen}")
    server.serve_forever(poll_interval=0.2)
    node.close()
    os.close(lock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
