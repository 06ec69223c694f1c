"""Its HAProxy, its files, and what it remembers of itself: state around all that acts."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from apps.agent import VERSION, protocol
from apps.agent.bodies import Manifest
from apps.agent.check.sandbox import readable_group
from apps.agent.check.trial_run import end_left_over
from apps.agent.errors import Refusal, Unavailable, unavailable
from apps.agent.events import Events
from apps.agent.log.request_log import RequestLog
from apps.agent.names.resolver import Resolver
from apps.agent.process import counters
from apps.agent.process.changes import Changes
from apps.agent.process.proxy import Proxy
from apps.agent.process.totals import Totals
from apps.agent.release import nodecfg, state_file
from apps.agent.release.health import servers_in
from apps.agent.release.nodecfg import Surroundings
from apps.agent.release.releases import Releases, make_dir, write_file
from apps.agent.release.tickets import Tickets
from apps.agent.safeguards import Safeguards
from apps.agent.settings import Settings
from apps.agent.static_ips.addresses import Addresses

ALL = Safeguards()
CLOSELY_S, LATE_S = 0.05, 3.0


class Node:
    """One HAProxy and its files. Whoever changes what runs holds `switching`."""

    def __init__(self, settings: Settings, events: Events, safeguards: Safeguards = ALL) -> None:
        self.settings = settings
        self.events = events
        self.guards = safeguards
        group = readable_group(settings)
        for folder in (settings.state_dir, settings.run_dir, settings.state_dir / "empty"):
            make_dir(folder, group)
        self.releases = Releases(settings.state_dir, group, safeguards.replace_link)
        self.proxy = Proxy(settings, self.releases.live_link)
        self.log = RequestLog(settings, self.proxy, events)
        self.addresses = Addresses(settings, self.releases.live_link)
        self.resolver = Resolver(settings, self.releases.live_link, events, safeguards.names)
        self.tickets = Tickets(settings)
        self._counting = threading.Lock()
        self._totals = Totals()
        self.changes = Changes()
        self.switching = threading.RLock()
        self.drift: tuple[str, ...] = ()
        self.unavailable = ""
        self.probe_secret = state_file.probe_secret(settings.state_dir / "probe")
        self._state_path = settings.state_dir / "state.json"
        self.confirmed = state_file.load(self._state_path)
        self.last_reload = 0.0
        # Servers (`pool-1/srv-2`) that left at run time and still had connections.
        self.leaving: set[str] = set()
        self.stopping = False
        end_left_over(settings)
        if not settings.health_file.exists():
            self.write_health("", "")

    # What it says of itself

    def state(self) -> dict[str, Any]:
        """GET /v1/state."""
        found = self.proxy.processes_now()
        confirmed = self.confirmed
        live = self.releases.live()
        return {
            "name": self.settings.name,
            "generation": confirmed.generation,
            "digest": confirmed.digest,
            "on_disk": self.releases.on_disk(live),
            "haproxy_version": self.proxy.build().version,
            "http3": self.proxy.build().http3,
            "features": list(self.proxy.build().features),
            "tls_library": self.proxy.build().tls_library,
            "protocols": [protocol.OLDEST, protocol.NEWEST],
            "haproxy_path": self.settings.haproxy,
            "agent_version": VERSION,
            "boot_id": boot_id(),
            "workers": len(found.current) + len(found.old) if found else 0,
            "serving": bool(found and found.current and confirmed.generation),
            "reloads": confirmed.reloads,
            "drift": list(self.drift),
            "last_error": confirmed.last_error,
            "unavailable": self.unavailable,
            "last_known_good": confirmed.last_known_good,
            "address": self.settings.address,
            "port_offset": self.settings.port_offset,
            "addresses": self.addresses.state(),
            "ticket_secrets": self.tickets.digest,
            "clock": time.time(),
        }

    def samples(self) -> dict[str, Any]:
        """GET /v1/samples; raises OSError when no worker answers."""
        with self._counting:
            text = self.proxy.worker(counters.COMMAND, timeout=10.0)
            return self._totals.add(counters.read(text, self._why_unresolved))

    @contextlib.contextmanager
    def counting_closely(self) -> Iterator[None]:
        """Read the counters often while workers change and a moment after: what a worker counts unread is lost."""
        changed = threading.Event()
        threading.Thread(target=self._count_closely, args=(changed,), daemon=True).start()
        try:
            yield
        finally:
            changed.set()

    def _count_closely(self, changed: threading.Event) -> None:
        until = math.inf
        while (began := time.monotonic()) < until:
            seen = changed.is_set()
            try:
                self.samples()
            except OSError:
                seen = False
            with self._counting:
                left = [worker for worker in self._totals.leaving if not self._count_late(worker)]
                self._totals.forget(left)
            if seen:
                until = min(until, began + (LATE_S if self._totals.leaving else 0))
            time.sleep(max(CLOSELY_S, 4 * (time.monotonic() - began)))  # a fifth of a core at most

    def _count_late(self, worker: str) -> bool:
        """Count what a leaving worker still does; False when it has left."""
        try:
            text = self.proxy.leaving_worker(int(worker.partition("-")[0]), counters.COMMAND)
        except ProcessLookupError:
            return False
        except OSError:  # the master reads its configuration anew
            return True
        return self._totals.add_late(worker, counters.read(text))

    def reading(self, since: str) -> dict[str, Any]:
        """GET /v1/reading: both of the above, less what the reader of the answer `since` knows.

        `samples` is None while no worker answers, and `trouble` says why.
        """
        state = self.state()
        trouble = ""
        if state["workers"]:
            try:
                return self.changes.tell(since, state, self.samples())
            except OSError as error:
                self.events.add("error", f"samples: {error}")
                trouble = unavailable(error, "").message
        whole = {key: value for key, value in state.items() if key != "clock"}
        return {"token": "", "base": "", "clock": state["clock"], "state": whole, "samples": None, "trouble": trouble}

    def _why_unresolved(self, pool: str, server: str) -> str:
        """Why a server with a name has no address, in words; nothing where the release has it no more."""
        live = self.releases.live()
        found = servers_in(live).get((pool, server)) if live else None
        return self.resolver.why_unresolved(found.host) if found else ""

    # What it writes for haproxy

    def node_cfg(self, manifest: Manifest, generation: int) -> str:
        """Text of node.cfg for this node."""
        return nodecfg.render(
            manifest,
            generation=generation,
            probe=self.probe_secret,
            around=Surroundings(
                self.settings.run_dir,
                self.settings.health_file,
                self.resolver.address,
                self.settings.tickets_dir,
                self.log.level(),
            ),
            endpoints={bind.listener_id: nodecfg.endpoint(self.settings, bind) for bind in manifest.binds},
            rights=(self.settings.user, self.settings.state_dir / "empty") if self.settings.drops_rights else None,
            node=self.id_of(manifest),
        )

    def id_of(self, manifest: Manifest) -> str:
        """What the manifest calls this node."""
        return manifest.nodes.get(self.settings.name, nodecfg.UNKNOWN_NODE)

    def write_health(self, shown: str, config: str, may_stay: Callable[[str], bool] = bool) -> None:
        """Which servers are down, for the worker that starts next."""
        text = self.guards.health(shown, config, may_stay)
        write_file(self.settings.health_file, text.encode(), readable_group(self.settings))

    # What it remembers

    def remember(self, release: Path, manifest: Manifest, generation: int, *, reloaded: bool = False) -> None:
        """This release runs, as haproxy confirmed; older ones may go."""
        self.confirmed = dataclasses.replace(
            self.confirmed,
            generation=generation,
            digest=manifest.digest,
            release=release.name,
            confirmed_at=time.time(),
            reloads=self.confirmed.reloads + reloaded,
            last_error="",
        )
        state_file.save(self._state_path, self.confirmed)
        self.drift, self.unavailable = (), ""
        needed = frozenset({release.name, self.confirmed.last_known_good})
        self.releases.prune(self.settings.keep, needed)

    def soaked(self) -> None:
        """What runs is the last known good from now on."""
        self.confirmed = dataclasses.replace(self.confirmed, last_known_good=self.confirmed.release)
        state_file.save(self._state_path, self.confirmed)
        self.events.add("state", f"generation {self.confirmed.generation} is the last known good")

    @contextlib.contextmanager
    def failing_aloud(self, generation: int, stage: str) -> Iterator[None]:
        """What goes wrong in a change is told in the state; whatever the machine lacks makes it Unavailable."""
        try:
            yield
        except Refusal as refusal:
            self.unavailable = ""
            self.note_error(f"Generation {generation} was refused ({refusal.stage}): {refusal.message}")
            raise
        except (Unavailable, OSError, subprocess.TimeoutExpired) as error:
            found = unavailable(error, stage)
            self.unavailable = f"Generation {generation} was not taken ({found.stage}): {found.message}"
            self.note_error(self.unavailable)
            raise found from error

    def note_error(self, text: str) -> None:
        """Tell it in the state and among the events, also after a restart."""
        self.confirmed = dataclasses.replace(self.confirmed, last_error=text)
        self.events.add("error", text)
        with contextlib.suppress(OSError):  # a full disk is no reason to keep quiet about what was to be said
            state_file.save(self._state_path, self.confirmed)

    def close(self) -> None:
        """The agent ends; haproxy too, unless it was asked to leave it running."""
        self.resolver.close()
        with self.switching:
            self.stopping = True
            if not self.settings.leave_running:
                self.addresses.stop()
                self.proxy.stop()
        self.log.stop()


def boot_id() -> str:
    """The kernel's name for this boot; empty where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
