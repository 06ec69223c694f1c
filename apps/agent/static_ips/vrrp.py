"""VRRP: the one keepalived of this node, which moves addresses between it and the others."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from apps.agent.bodies import sha256
from apps.agent.errors import Refusal, Unavailable
from apps.agent.process.daemon import Daemon
from apps.agent.settings import Settings

CONFIG, NODE_CONFIG = "keepalived.conf", "node-vrrp.conf"
CHECK_SECONDS = 10


class Keepalived:
    """Started for a release that has addresses of kind vip, ended with the first that has none."""

    def __init__(self, settings: Settings, live: Path) -> None:
        self._settings = settings
        self._live = live
        config = str(live / NODE_CONFIG)
        self.daemon = Daemon("keepalived", settings.run_dir, settings.state_dir / "keepalived.log", config)
        self._loaded = settings.run_dir / "keepalived.loaded"

    def node_config(self) -> str:
        """Text of node-vrrp.conf: what the fleet's keepalived.conf leaves to the node."""
        check = f"{sys.executable} -ISE {self._settings.health_watchdog} {self._settings.facts}"
        user = pwd.getpwuid(os.geteuid()).pw_name
        lines = ["global_defs {", f"    script_user {user}", "}", f"$INTERFACE={self._settings.interface}"]
        return "\n".join([*lines, f"$CHECK={check}", f"includea {CONFIG}", ""])

    def check(self, release: Path, node: str) -> None:
        """`keepalived -t` on the files of a release; raises Refusal with its own words."""
        if not shutil.which(self._settings.keepalived):
            raise Refusal(
                "The bundle has addresses that VRRP moves, and this node has no keepalived: install it, "
                "or say where it is with --keepalived.", "validate",
            )  # fmt: skip
        if not self._settings.interface:
            raise Refusal(
                "The bundle has addresses that VRRP moves, and no interface of this node has "
                f"{self._settings.address}: give the agent --interface.", "validate",
            )  # fmt: skip
        command = [self._settings.keepalived, "-t", "-f", str(release / NODE_CONFIG), "-i", node]
        run_check(command, release, "keepalived")

    def bring(self, release: Path, node: str) -> None:
        """Make keepalived run the release at `live`; untouched when its files are what it has loaded."""
        wanted = sha256((release / NODE_CONFIG).read_bytes() + (release / CONFIG).read_bytes() + node.encode())
        running = bool(self.daemon.pid())
        if running and self._loaded.is_file() and self._loaded.read_text() == wanted:
            return
        if running:
            self.daemon.tell(signal.SIGHUP)
        else:
            command = [
                self._settings.keepalived,
                "-n",
                "-l",
                "-G",
                "-P",
                "-f",
                str(self._live / NODE_CONFIG),
                "-i",
                node,
            ]
            pids = [
                "-p",
                str(self._settings.run_dir / "vrrp-parent.pid"),
                "-r",
                str(self._settings.run_dir / "vrrp.pid"),
            ]
            self.daemon.start([*command, *pids], self._settings.state_dir)
        self._loaded.write_text(wanted)

    def stop(self) -> None:
        """End it: it tells the others, and takes the addresses off the interface."""
        self.daemon.stop()


def run_check(command: list[str], folder: Path, name: str) -> None:
    """Let a program look at its configuration; raises Refusal with its words, Unavailable without any."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CHECK_SECONDS, check=False, cwd=str(folder)
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{name} could not check its configuration: {error}.", "validate") from error
    if done.returncode < 0:
        raise Unavailable(f"{name} was ended by signal {-done.returncode} while it checked.", "validate")
    if done.returncode != 0:
        text = (done.stdout + done.stderr).decode("utf-8", "replace").replace(f"{folder}/", "")
        first = next((line for line in text.splitlines() if line.strip()), f"status {done.returncode}")
        raise Refusal(f"{name} refuses its configuration: {first}", "validate", output=text)
