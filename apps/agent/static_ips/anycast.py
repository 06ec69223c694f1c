"""BGP: the one BIRD of this node with its health watchdog, and the addresses accepted here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from apps.agent.bodies import sha256
from apps.agent.errors import Refusal, Unavailable
from apps.agent.process.daemon import Daemon
from apps.agent.settings import Settings, text_of
from apps.agent.static_ips import health_watchdog
from apps.agent.static_ips.vrrp import run_check

CONFIG, NODE_CONFIG = "bird.conf", "node-bird.conf"
# The kernel notes with each route whose it is: by this number the agent knows its own.
ROUTE_OWNER = "120"
# A router that was away is called again within seconds; by itself BIRD waits for one to five minutes.
TIMES = (
    "    hold time 9;",
    "    connect retry time 5;",
    "    connect delay time 1;",
    "    error wait time 1, 10;",
    "    bfd on;",
)


class Bird:
    """Started with its health watchdog for a release that has anycast addresses, ended with the first that has none."""

    def __init__(self, settings: Settings, live: Path, python: str) -> None:
        self._settings = settings
        self._live = live
        self._python = python
        self.daemon = Daemon(
            "health-watchdog", settings.run_dir, settings.state_dir / "bird.log", str(settings.health_watchdog)
        )
        self._loaded = settings.run_dir / "bird.loaded"
        self._control = settings.run_dir / "bird.sock"
        self._announcing = settings.run_dir / "announcing.conf"

    def facts(self) -> dict[str, Any]:
        """What the health watchdog has to know: how BIRD is started and spoken to. BIRD does not outlive it."""
        bird = [self._settings.bird, "-f", "-c", str(self._live / NODE_CONFIG), "-s", str(self._control)]
        command = ["setpriv", "--pdeathsig", "TERM", "--", *bird]
        return {"command": command, "control": str(self._control), "announcing": str(self._announcing)}

    def node_config(self) -> str:
        """Text of node-bird.conf: the node's number, its routers, and the fleet's file between them."""
        lines = ["log stderr all;", *self._router_id(), f'include "{self._announcing}";', f'include "{CONFIG}";']
        for number, (router_as, address) in enumerate(self._settings.bgp_neighbours, 1):
            lines += [f"protocol bgp router{number} {{", f"    local as {self._settings.bgp_as};"]
            lines += [f"    neighbor {address} as {router_as};", *TIMES, *self._password()]
            family = "ipv6" if ":" in address else "ipv4"
            lines += [f"    {family} {{ import none; export filter announced; }};", "}"]
        return "\n".join([*lines, ""])

    def _router_id(self) -> list[str]:
        """The node's own address; BIRD finds one itself where that says nothing."""
        own = self._settings.own_ip
        return [f"router id {own};"] if own is not None and own.version == 4 else []

    def _password(self) -> list[str]:
        if self._settings.bgp_password_file is None:
            return []
        return [f'    password "{text_of(self._settings.bgp_password_file)}";']

    def check(self, release: Path, addresses: list[str]) -> None:
        """`bird -p` on the files of a release; raises Refusal with its own words."""
        for program, flag in ((self._settings.bird, "--bird"), ("ip", "PATH"), ("setpriv", "PATH")):
            if not shutil.which(program):
                raise Refusal(
                    f"The bundle has addresses that BGP announces, and this node has no {program}: install it, "
                    f"or set its path with {flag}.", "validate",
                )  # fmt: skip
        routers = [address for _, address in self._settings.bgp_neighbours]
        for address in addresses:
            if not self._settings.bgp_as or not any((":" in each) == (":" in address) for each in routers):
                raise Refusal(
                    f"{address} is announced by BGP, and this node knows no router for it: give the agent --bgp-as and "
                    "--bgp-neighbour with a router of that family.", "validate",
                )  # fmt: skip
        if not self._announcing.exists():
            health_watchdog.write_announcing(str(self._announcing), yes=False)
        run_check([self._settings.bird, "-p", "-c", str(release / NODE_CONFIG)], release, "BIRD")

    def bring(self, release: Path, addresses: list[str]) -> None:
        """Accept the addresses on this machine, and make BIRD run what lies at `live`; raises Refusal, Unavailable."""
        self.accept(addresses)
        wanted = sha256((release / NODE_CONFIG).read_bytes() + (release / CONFIG).read_bytes())
        if not self.daemon.pid():
            words = [self._python, "-ISE", str(self._settings.health_watchdog), str(self._settings.facts), "--watch"]
            self.daemon.start(words, self._settings.state_dir)
        elif not self._loaded.is_file() or self._loaded.read_text() != wanted:
            try:
                health_watchdog.command(str(self._control), "configure")
            except OSError as error:
                raise Unavailable(f"BIRD does not answer ({error}).", "switch") from error
        self._loaded.write_text(wanted)

    def accept(self, addresses: list[str]) -> None:
        """Let this machine take packets for exactly these addresses of ours; raises Refusal."""
        wanted, there = set(addresses), self.accepted()
        for address in sorted(wanted - there):
            _ip(address, "replace")
        for address in sorted(there - wanted):
            _ip(address, "del")

    def accepted(self) -> set[str]:
        """Addresses that this machine takes because we told it to."""
        found: set[str] = set()
        for family in ("-4", "-6"):
            command = ["ip", "-json", family, "route", "show", "table", "local", "proto", ROUTE_OWNER]
            done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
            rows = json.loads(done.stdout) if done.stdout.strip() else []
            found |= {str(row["dst"]).partition("/")[0] for row in rows if row.get("dst")}
        return found

    def announces(self) -> bool:
        """Whether the health watchdog lets BIRD announce, and a router hears it."""
        try:
            if "true" not in self._announcing.read_text():
                return False
            return "Established" in health_watchdog.command(str(self._control), "show protocols")
        except OSError:
            return False

    def stop(self) -> None:
        """End both: the sessions close, and the routers forget what was announced."""
        self.daemon.stop()

    def forget(self) -> None:
        """End both and accept nothing any more, where this agent ever began with it."""
        if self._loaded.exists():
            self.stop()
            self.accept([])
            self._loaded.unlink()


def _ip(address: str, action: str) -> None:
    length = 128 if ":" in address else 32
    family = "-6" if ":" in address else "-4"
    words = ["ip", family, "route", action, "local", f"{address}/{length}", "dev", "lo", "table", "local"]
    done = subprocess.run(
        [*words, "proto", ROUTE_OWNER], capture_output=True, text=True, timeout=5, check=False, env=os.environ
    )
    if done.returncode != 0:
        raise Refusal(f"{address} could not be accepted on this machine: {done.stderr.strip()}.", "switch")
