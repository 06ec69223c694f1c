"""PUSH on the node: the order in which a bundle is fenced, checked, tried, switched, confirmed or put back."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from apps.agent import VERSION
from apps.agent.bodies import MOVED_BY, BundleBody, Manifest, RuntimeBody, read_bundle
from apps.agent.check.load_time import load_seconds
from apps.agent.check.sandbox import readable_group
from apps.agent.check.trial_run import end_left_over
from apps.agent.errors import FAILURES, Crashed, Malformed, Refusal, Unavailable, unavailable
from apps.agent.events import Events
from apps.agent.names.resolver import Resolver
from apps.agent.process import counters
from apps.agent.process.proxy import Proxy
from apps.agent.release import nodecfg, runtime, state_file
from apps.agent.release.confirm import Wanted, worker_identity
from apps.agent.release.health import servers_in
from apps.agent.release.nodecfg import Surroundings
from apps.agent.release.releases import Releases, make_dir, write_file
from apps.agent.safeguards import Safeguards
from apps.agent.settings import Settings
from apps.agent.static_ips.addresses import Addresses

ALL = Safeguards()


class Node:
    """One HAProxy and its files. `preparing` serialises checks, `switching` everything that changes what runs."""

    def __init__(self, settings: Settings, events: Events, safeguards: Safeguards = ALL) -> None:
        self.settings = settings
        self.events = events
        self._guards = safeguards
        group = readable_group(settings)
        for folder in (settings.state_dir, settings.run_dir, settings.state_dir / "empty"):
            make_dir(folder, group)
        self.releases = Releases(settings.state_dir, group, safeguards.replace_link)
        self.proxy = Proxy(settings, self.releases.live_link)
        self.addresses = Addresses(settings, self.releases.live_link)
        self.resolver = Resolver(settings, self.releases.live_link, events, safeguards.names)
        self.switching = threading.RLock()
        self.drift: tuple[str, ...] = ()
        self.unavailable = ""
        self._preparing = threading.Lock()
        self._sandbox = safeguards.sandbox(settings)
        self.probe_secret = state_file.probe_secret(settings.state_dir / "probe")
        self._state_path = settings.state_dir / "state.json"
        self.confirmed = state_file.load(self._state_path)
        self._last_reload = 0.0
        self._stopping = False
        end_left_over(settings)
        if not settings.health_file.exists():
            self._write_health("", "")

    # What a caller may ask for

    def read(self, body: bytes) -> BundleBody:
        """The body of a push, its digests verified; raises Malformed."""
        return read_bundle(body, self._guards.same_content)

    def push(self, body: BundleBody) -> dict[str, Any]:
        """Make the node run the bundle; raises Refusal, Unavailable or Superseded and then runs what it ran."""
        self._fence(body.generation)
        with self._preparing, self._failing_aloud(body.generation, "switch"):
            self._fence(body.generation)
            self._guards.supported(self.proxy.version())
            release = self.releases.seal(self._draft(body), body.generation)
            self._try(release, body)
            with self.switching:
                self._fence(body.generation)
                self._refuse_taken_ports(release, body.manifest)
                self._respect_gap()
                self.switch(release, body.manifest, body.generation)
        self.events.add("state", f"generation {body.generation} runs, digest {body.manifest.digest[:12]}")
        return self.state()

    def check(self, body: BundleBody) -> dict[str, Any]:
        """Whether a push of the bundle would come beyond a stage; raises as a push does, and changes nothing."""
        self._fence(body.generation)
        with self._preparing:
            self._guards.supported(self.proxy.version())
            draft = self._draft(body)
            try:
                self._try(draft, body, body.only_check)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return self.state()

    def operate(self, body: RuntimeBody) -> dict[str, Any]:
        """Change the running worker without a reload and bring the files along.

        Raises Refusal, Unavailable, Superseded, Missing.
        """
        with self.switching:
            self._fence(body.generation)
            old = self.releases.live()
            if old is None:
                raise Refusal("This node does not run anything that could be changed.", "runtime")
            self._guards.base(body.base_digest, self.confirmed.digest, self.releases.on_disk(old))
            base = self.releases.manifest(old)
            files, same, commands = runtime.prepare(body, base, old, self._guards.safe_word)
            with self._failing_aloud(body.generation, "runtime"):
                draft = self.releases.prepare(body.generation, files, old, same)
                self._write_node_cfg(draft, body.manifest, body.generation)
                if files.keys() - {"manifest.json"} - {path for path in files if path.startswith("maps/")}:
                    self._unless_it_crashes(self._check, draft, body.manifest, body.generation)
                release = self.releases.seal(draft, body.generation)
                self.releases.point_live(release)
                self._run(commands, old, base)
                self._remember(release, body.manifest, body.generation)
        return self.state()

    def _run(self, commands: runtime.Commands, old: Path, base: Manifest) -> None:
        """Tell the worker; where it does not follow, the old release is put back. Raises Refusal."""
        try:
            runtime.run(commands, self.proxy, self._guards.safe_word)
        except (Refusal, OSError) as error:
            self._put_back(old, base, self.confirmed.generation)
            message = error.message if isinstance(error, Refusal) else f"The worker did not answer: {error}."
            raise Refusal(message, "runtime") from error

    def state(self) -> dict[str, Any]:
        """GET /v1/state."""
        found = self.proxy.processes()
        confirmed = self.confirmed
        live = self.releases.live()
        return {
            "name": self.settings.name,
            "generation": confirmed.generation,
            "digest": confirmed.digest,
            "on_disk": self.releases.on_disk(live),
            "haproxy_version": self.proxy.version(),
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
            "clock": time.time(),
        }

    def samples(self) -> dict[str, Any]:
        """GET /v1/samples; raises OSError when no worker answers."""
        return counters.read(self.proxy, self._why_unresolved)

    def _why_unresolved(self, pool: str, server: str) -> str:
        """Why a server with a name has no address, in words; nothing where the release has it no more."""
        live = self.releases.live()
        found = servers_in(live).get((pool, server)) if live else None
        return self.resolver.why_unresolved(found.host) if found else ""

    # The switch

    def switch(self, release: Path, manifest: Manifest, generation: int) -> None:
        """Point `live` at the release, reload, confirm, remember; any failure puts the old one back."""
        old = self.releases.live()
        self.releases.point_live(release)
        try:
            self._reload(release, manifest, generation)
        except FAILURES:
            previous = self.releases.manifest(old) if old is not None and old != release else None
            self._put_back(old if previous else None, previous, self.confirmed.generation)
            raise
        self._remember(release, manifest, generation, reloaded=True)

    def _put_back(self, old: Path | None, manifest: Manifest | None, generation: int) -> None:
        try:
            self._guards.put_back(self.releases, old)
            if old is None or manifest is None:
                self.addresses.stop()
                self.proxy.stop()
                return
            self._reload(old, manifest, generation)
        except FAILURES as error:
            self._note_error(f"The old configuration was put back and does not answer: {error}")

    def _reload(self, release: Path, manifest: Manifest, generation: int) -> None:
        """Let a worker load what lies at `live`, wait until it answers, then let it have addresses; raises FAILURES."""
        identity = (generation, manifest.digest)
        self.addresses.switching(manifest, identity, self.probe_secret)
        offset = self.proxy.log_end()
        self._hand_on_health(release)
        self.proxy.reload_or_start(release, self.settings.confirm_timeout + load_seconds(release))
        self._last_reload = time.monotonic()
        wanted = Wanted(release, manifest, generation, self.probe_secret)
        self._guards.confirm(self.settings, self.proxy, wanted, offset)
        self.addresses.switched(manifest, identity, self.probe_secret)
        self.addresses.bring(release, manifest)

    def _hand_on_health(self, release: Path) -> None:
        """Write down which servers are down now, so that the next worker does not have to find out by requests."""
        try:
            shown = self.proxy.worker("show servers state", timeout=5.0)
            may_stay = partial(self.resolver.may_stay, release=release)
            self._write_health(shown, (release / "haproxy.cfg").read_text(), may_stay)
        except (OSError, ValueError):
            self._write_health("", "")  # nobody runs: nothing is known

    def _write_health(self, shown: str, config: str, may_stay: Callable[[str], bool] = bool) -> None:
        text = self._guards.health(shown, config, may_stay)
        write_file(self.settings.health_file, text.encode(), readable_group(self.settings))

    # The parts

    def _fence(self, generation: int) -> None:
        self._guards.fence(generation, self.confirmed.generation)
        if self._stopping:
            raise Unavailable("This agent is being stopped.", "switch")

    def _check_words(self, body: BundleBody) -> None:
        """What programs with more rights than haproxy would read."""
        for path in MOVED_BY.values():
            if path in body.files:
                self._guards.check_allowlist(path, body.files[path].decode("latin-1"))

    def _draft(self, body: BundleBody) -> Path:
        draft = self.releases.prepare(body.generation, body.files, None, frozenset())
        self._write_node_cfg(draft, body.manifest, body.generation)
        return draft

    def _try(self, release: Path, body: BundleBody, until: str = "trial_run") -> None:
        """All that is asked of a release, up to a stage, before it takes the place of another one."""
        self._check_words(body)
        self._unless_it_crashes(self._check, release, body.manifest, body.generation)
        self._guards.addresses(self.addresses, release, body.manifest)
        if until == "trial_run":
            self._unless_it_crashes(self._trial_run, release, body.manifest, body.generation)

    def _check(self, release: Path, _manifest: Manifest, _generation: int) -> None:
        self._guards.check(self._sandbox, release, release / "node.cfg")

    def _trial_run(self, release: Path, manifest: Manifest, generation: int) -> None:
        self._guards.trial_run(self.settings, self._sandbox, release, manifest, generation, self.probe_secret)

    def _unless_it_crashes(
        self, attempt: Callable[[Path, Manifest, int], None], release: Path, manifest: Manifest, generation: int
    ) -> None:
        """Files on which HAProxy crashes twice are refused, unless it crashes on those that it runs as well."""
        with contextlib.suppress(Crashed):  # once may be anybody's fault
            attempt(release, manifest, generation)
            return
        try:
            attempt(release, manifest, generation)
        except Crashed as crash:
            if (live := self.releases.live()) is not None:
                attempt(live, self.releases.manifest(live), self.confirmed.generation)
            raise Refusal(f"{crash.message} It does so each time, and only on these files.", crash.stage) from crash

    def _write_node_cfg(self, draft: Path, manifest: Manifest, generation: int) -> None:
        write_file(draft / "node.cfg", self.node_cfg(manifest, generation).encode(), readable_group(self.settings))
        for name, content in self.addresses.node_files(manifest).items():
            write_file(draft / name, content)

    def node_cfg(self, manifest: Manifest, generation: int) -> str:
        """Text of node.cfg for this node."""
        return nodecfg.render(
            manifest,
            generation=generation,
            probe=self.probe_secret,
            around=Surroundings(self.settings.run_dir, self.settings.health_file, self.resolver.address),
            endpoints={bind.listener_id: nodecfg.endpoint(self.settings, bind) for bind in manifest.binds},
            rights=(self.settings.user, self.settings.state_dir / "empty") if self.settings.drops_rights else None,
            node=self._id(manifest),
        )

    def _id(self, manifest: Manifest) -> str:
        return manifest.nodes.get(self.settings.name, nodecfg.UNKNOWN_NODE)

    def _endpoints(self, release: Path, manifest: Manifest) -> list[tuple[str, str, int]]:
        """What a release binds on this node: listeners, and the port on which the peers meet this one."""
        found = [(bind.listener_id, *nodecfg.endpoint(self.settings, bind)) for bind in manifest.binds]
        config = release / "haproxy.cfg"  # the live one may have been taken away: a push repairs that
        peer = nodecfg.peer_endpoint(config.read_text(), self._id(manifest)) if config.is_file() else None
        return [*found, ("peers", *peer)] if peer else found

    def _refuse_taken_ports(self, release: Path, manifest: Manifest) -> None:
        """A port that we do not hold yet must be free: haproxy would pause the running listeners while it retries."""
        held: set[tuple[str, int]] = set()
        live = self.releases.live()
        if live is not None and self.proxy.running():
            held = {(address, port) for _, address, port in self._endpoints(live, self.releases.manifest(live))}
        for name, address, port in self._endpoints(release, manifest):
            if port > 65535:
                raise Refusal(f"{name}: port {port}, with this node's offset, is above 65535.", "switch")
            moves = address in manifest.addresses
            reason = None if (address, port) in held else self._guards.port_taken(address, port, moves)
            if reason:
                raise Refusal(f"{name}: port {port} on {address} {reason}.", "switch")

    def _respect_gap(self) -> None:
        wait = self._last_reload + self.settings.reload_gap - time.monotonic()
        if self._last_reload and wait > 0:
            time.sleep(wait)

    def _remember(self, release: Path, manifest: Manifest, generation: int, *, reloaded: bool = False) -> None:
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

    @contextlib.contextmanager
    def _failing_aloud(self, generation: int, stage: str) -> Iterator[None]:
        """What goes wrong in a change is told in the state; whatever the machine lacks makes it Unavailable."""
        try:
            yield
        except Refusal as refusal:
            self.unavailable = ""
            self._note_error(f"Generation {generation} was refused ({refusal.stage}): {refusal.message}")
            raise
        except (Unavailable, OSError, subprocess.TimeoutExpired) as error:
            found = unavailable(error, stage)
            self.unavailable = f"Generation {generation} was not taken ({found.stage}): {found.message}"
            self._note_error(self.unavailable)
            raise found from error

    def _note_error(self, text: str) -> None:
        self.confirmed = dataclasses.replace(self.confirmed, last_error=text)
        self.events.add("error", text)
        with contextlib.suppress(OSError):  # a full disk is no reason to keep quiet about what was to be said
            state_file.save(self._state_path, self.confirmed)

    # Life: start, restart, soak, end

    def recover(self) -> None:
        """Find out at the agent's start what runs, and finish or start what is needed.

        1. Nothing was ever switched: nothing to do.
        2. `live` is what was confirmed and haproxy runs it: adopt it.
        3. haproxy runs, but the agent died between switch and confirmation: roll forward, the trial run went well.
        4. haproxy runs what nobody switched to: somebody else started it, and its master would only ever read the same
           files again. It is ended.
        5. haproxy does not run: start from `live`, or from the last known good when that fails.
        """
        with self.switching:
            live = self.releases.live()
            if live is None:
                return
            found = self.proxy.processes_soon()
            if found:
                for pid in self.proxy.end_others(found.master):
                    self.events.add("error", f"haproxy {pid} ran beside {found.master} and is ended")
            if found and not self.addresses.expects(worker_identity(self.proxy)):
                self.events.add("error", f"haproxy {found.master} was started by somebody else and is ended")
                self.proxy.stop()
            elif found and live.name == self.confirmed.release:
                self.events.add("state", f"took over haproxy {found.master}, generation {self.confirmed.generation}")
                self._take_over_addresses(live)
                return
            try:
                self._bring_up(live)
            except (*FAILURES, Malformed) as error:
                self._note_error(f"The live configuration could not be started: {error}")
                self._fall_back(live)

    def _take_over_addresses(self, live: Path) -> None:
        """Find keepalived and BIRD again, or start them; haproxy goes on in any case."""
        try:
            self.addresses.bring(live, self.releases.manifest(live))
        except (*FAILURES, Malformed) as error:
            self._note_error(f"The static IPs could not be taken over: {error}")

    def _bring_up(self, release: Path) -> None:
        manifest = self.releases.manifest(release)
        generation = int(release.name.partition("-")[0])
        self.releases.point_live(release)
        self._reload(release, manifest, generation)
        self._remember(release, manifest, generation, reloaded=True)
        self.events.add("state", f"haproxy runs generation {generation}")

    def _fall_back(self, failed: Path) -> None:
        """Start what soaked last, else what was confirmed last; the error stays readable."""
        reason = self.confirmed.last_error
        for name in dict.fromkeys((self.confirmed.last_known_good, self.confirmed.release)):
            release = self.releases.path(name) if name else None
            if release is None or release == failed or not release.is_dir():
                continue
            try:
                self._bring_up(release)
            except (*FAILURES, Malformed) as error:
                self._note_error(f"{reason} The last known good one could not be started either: {error}")
            else:
                self._note_error(f"{reason} The last known good generation {self.confirmed.generation} runs instead.")
                return

    def tend(self) -> bool:
        """Restart haproxy when it is gone, promote what soaked; False when a restart failed (the caller backs off)."""
        if not self.switching.acquire(blocking=False):
            return True
        try:
            if self._stopping or self.releases.live() is None:
                return True
            if not self.proxy.running():
                self.events.add("error", "haproxy is gone and is started again")
                self.recover()
                return self.proxy.running()
            self._promote()
            return self._tend_addresses()
        finally:
            self.switching.release()

    def _tend_addresses(self) -> bool:
        missing, live = self.addresses.missing(), self.releases.live()
        if not missing or live is None:
            return True
        self.events.add("error", f"{' and '.join(missing)} is gone and is started again")
        self._take_over_addresses(live)
        return not self.addresses.missing()

    def _promote(self) -> None:
        confirmed = self.confirmed
        soaked = confirmed.confirmed_at and time.time() - confirmed.confirmed_at >= self.settings.soak
        if soaked and confirmed.last_known_good != confirmed.release:
            self.confirmed = dataclasses.replace(confirmed, last_known_good=confirmed.release)
            state_file.save(self._state_path, self.confirmed)
            self.events.add("state", f"generation {confirmed.generation} is the last known good")

    def close(self) -> None:
        """The agent ends; haproxy too, unless it was asked to leave it running."""
        self.resolver.close()
        with self.switching:
            self._stopping = True
            if not self.settings.leave_running:
                self.addresses.stop()
                self.proxy.stop()


def boot_id() -> str:
    """The kernel's name for this boot; empty where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
