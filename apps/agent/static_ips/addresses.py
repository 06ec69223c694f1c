"""Static IPs that move: what a release needs of keepalived and BIRD, and what this node holds now.

Both are the agent's, as haproxy is: started for a release that needs them, found again by the next agent, ended before
haproxy. Neither asks the agent whether haproxy is well: they ask `health_watchdog.py`, which goes by the facts
written here.
"""

from __future__ import annotations

import json
import os
import pkgutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apps.agent.bodies import Manifest
from apps.agent.errors import Refusal
from apps.agent.process.sockets import is_here
from apps.agent.release import nodecfg
from apps.agent.release.releases import replace_file, write_json
from apps.agent.settings import Settings
from apps.agent.static_ips import anycast, vrrp
from apps.agent.static_ips.health_watchdog import ask_once

VIP, ANYCAST = "vip", "anycast"
# Others take an address over within this time after they heard that it is free.
TAKEN_OVER_SECONDS = 1.0

Identity = tuple[int, str]  # generation and digest that a worker was started with


class Addresses:
    """The addresses of this node; everything is idle where a release has none."""

    def __init__(self, settings: Settings, live: Path) -> None:
        self._settings = settings
        self.keepalived = vrrp.Keepalived(settings, live)
        self.bird = anycast.Bird(settings, live, sys.executable)
        self._now: dict[str, str] = {}

    # What a release needs

    def node_files(self, manifest: Manifest) -> dict[str, bytes]:
        """The node's own configurations for the programs that the release needs, by name."""
        files = {}
        if vrrp.CONFIG in manifest.files:
            files[vrrp.NODE_CONFIG] = self.keepalived.node_config().encode()
        if anycast.CONFIG in manifest.files:
            files[anycast.NODE_CONFIG] = self.bird.node_config().encode()
        return files

    def check(self, release: Path, manifest: Manifest) -> None:
        """Whether this node can do what the release wants of it; raises Refusal."""
        if not manifest.addresses:
            return
        if os.geteuid() != 0:
            raise Refusal("Static IPs that move need an agent that runs as root.", "validate")
        if vrrp.CONFIG in manifest.files:
            self.keepalived.check(release, self._id(manifest))
        if anycast.CONFIG in manifest.files:
            self.bird.check(release, of_kind(manifest, ANYCAST))

    def _id(self, manifest: Manifest) -> str:
        node = manifest.nodes.get(self._settings.name)
        if node is None:
            raise Refusal(
                f"The bundle moves addresses among nodes that do not include {self._settings.name}.", "validate"
            )
        return node

    # What haproxy has to answer, for the health watchdog

    def switching(self, manifest: Manifest, identity: Identity, secret: str) -> None:
        """While haproxy is reloaded the old worker is as right as the new one, for the listeners that both have."""
        before = self._read_facts()
        both = before.get("listeners", {}).keys() & self._sockets(manifest).keys()
        wanted = [list(each) for each in before.get("wanted", [])]
        self._write_facts(manifest, [*wanted, _spelled(identity)], secret, only=both)

    def switched(self, manifest: Manifest, identity: Identity, secret: str) -> None:
        """From now on the new worker alone is right."""
        self._write_facts(manifest, [_spelled(identity)], secret)

    def expects(self, identity: Identity) -> bool:
        """Whether this is the worker that was loaded last; yes where that is not known of it or of us."""
        wanted = self._read_facts().get("wanted")
        return not wanted or identity[0] == 0 or _spelled(identity) in wanted

    def _write_facts(
        self, manifest: Manifest, wanted: list[list[str]], secret: str, only: Iterable[str] | None = None
    ) -> None:
        sockets = self._sockets(manifest)
        facts = {
            "maintenance": str(self._settings.maintenance),
            "secret": secret,
            "wanted": wanted,
            "worker": str(self._settings.run_dir / "worker.sock"),
            "listeners": sockets if only is None else {name: sockets[name] for name in only},
            "bird": self.bird.facts(),
        }
        write_json(self._settings.facts, facts)

    def _read_facts(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._settings.facts.read_text())
        except (OSError, ValueError):
            return {}
        return found

    def _sockets(self, manifest: Manifest) -> dict[str, str]:
        moving = (bind for bind in manifest.binds if manifest.moves(bind) and bind.protocol != "tcp")
        return {bind.listener_id: str(nodecfg.private_socket(self._settings, bind)) for bind in moving}

    # The switch

    def bring(self, release: Path, manifest: Manifest) -> None:
        """Make the two programs run what the release wants; haproxy answers with it already. Raises Refusal."""
        self._now = dict(manifest.addresses)
        if self._now:
            replace_file(
                self._settings.health_watchdog, pkgutil.get_data("apps.agent.static_ips", "health_watchdog.py") or b""
            )
        if vrrp.CONFIG in manifest.files:
            self.keepalived.bring(release, self._id(manifest))
        else:
            self.keepalived.stop()
        if anycast.CONFIG in manifest.files:
            self.bird.bring(release, of_kind(manifest, ANYCAST))
        else:
            self.bird.forget()

    def stop(self) -> None:
        """Let others have the addresses while haproxy still answers, and wait until they took them."""
        running = bool(self.keepalived.daemon.pid() or self.bird.daemon.pid())
        self.keepalived.stop()
        self.bird.stop()
        if running:
            time.sleep(TAKEN_OVER_SECONDS)
        self.bird.forget()
        self._now = {}

    # What is so now

    def missing(self) -> list[str]:
        """Programs that should run and do not."""
        kinds = set(self._now.values())
        wanted = (
            (VIP, self.keepalived.daemon, "keepalived"),
            (ANYCAST, self.bird.daemon, "BIRD with its health watchdog"),
        )
        return [name for kind, daemon, name in wanted if kind in kinds and not daemon.pid()]

    def state(self) -> dict[str, str]:
        """Each address → held or standby (vip), announced or withdrawn (anycast)."""
        announced = ANYCAST in self._now.values() and self.bird.announces()
        return {
            address: ("held" if is_here(address) else "standby")
            if kind == VIP
            else ("announced" if announced else "withdrawn")
            for address, kind in self._now.items()
        }

    def drift(self, live: Path, manifest: Manifest) -> list[str]:
        """What differs from what was meant, in words."""
        if not manifest.addresses:
            return []
        words = [f"{name} does not run" for name in self.missing()]
        for path, content in self.node_files(manifest).items():
            if not (live / path).is_file() or (live / path).read_bytes() != content:
                words.append(f"{path} was edited")
        accepted = self.bird.accepted() if anycast.CONFIG in manifest.files else set()
        words += [f"{each} is not accepted here" for each in of_kind(manifest, ANYCAST) if each not in accepted]
        return words + self._kept_in_trouble()

    def _kept_in_trouble(self) -> list[str]:
        """Why this node has no addresses, unless somebody asked for that; and which are still here all the same."""
        why = ask_once(str(self._settings.facts))
        if not why or why == "maintenance":
            return []
        held = [address for address, kind in self._now.items() if kind == VIP and is_here(address)]
        return [f"this node may have no static IPs: {why}", *(f"{address} is still here" for address in held)]


def of_kind(manifest: Manifest, kind: str) -> list[str]:
    """The release's addresses of one kind."""
    return [address for address, each in manifest.addresses.items() if each == kind]


def _spelled(identity: Identity) -> list[str]:
    return [str(identity[0]), identity[1]]
