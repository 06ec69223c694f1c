"""The order in which a bundle is fenced, checked, tried, switched, confirmed or put back."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from apps.agent.bodies import MOVED_BY, BundleBody, Manifest, RuntimeBody, read_bundle
from apps.agent.check.sandbox import readable_group
from apps.agent.errors import Crashed, Malformed, Refusal, Unavailable
from apps.agent.node import Node
from apps.agent.release import certificates, nodecfg, runtime
from apps.agent.release.nodecfg import Endpoint
from apps.agent.release.releases import write_file
from apps.agent.switch import put_back, switch


class Push:
    """What a caller may ask of a node; `preparing` serialises checks, the node's `switching` what changes what runs."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._settings, self._guards = node.settings, node.guards
        self._releases, self._proxy, self._addresses = node.releases, node.proxy, node.addresses
        self._preparing = threading.Lock()
        self._sandbox = node.guards.sandbox(node.settings)

    def read(self, body: bytes) -> BundleBody:
        """The body of a push, its digests verified; raises Malformed."""
        return read_bundle(body, self._guards.same_content)

    def push(self, body: BundleBody) -> dict[str, Any]:
        """Make the node run the bundle; raises Refusal, Unavailable or Superseded and then runs what it ran."""
        self._fence(body.generation)
        with self._preparing, self.node.failing_aloud(body.generation, "switch"):
            self._fence(body.generation)
            self._guards.supported(self._proxy.build().version)
            release = self._releases.seal(self._draft(body), body.generation)
            self._try(release, body)
            with self.node.switching:
                self._fence(body.generation)
                self._refuse_taken_ports(release, body.manifest)
                self._respect_gap()
                switch(self.node, release, body.manifest, body.generation)
        self.node.events.add("state", f"generation {body.generation} runs, digest {body.manifest.digest[:12]}")
        return self.node.state()

    def check(self, body: BundleBody) -> dict[str, Any]:
        """Whether a push of the bundle would come beyond a stage; raises as a push does, and changes nothing."""
        self._fence(body.generation)
        with self._preparing:
            self._guards.supported(self._proxy.build().version)
            draft = self._draft(body)
            try:
                self._try(draft, body, body.only_check)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return self.node.state()

    def operate(self, body: RuntimeBody) -> dict[str, Any]:
        """Change the running worker without a reload and bring the files along.

        Raises Refusal, Unavailable, Superseded, Missing.
        """
        with self.node.switching:
            self._fence(body.generation)
            old = self._releases.live()
            if old is None:
                raise Refusal("This node does not run anything that could be changed.", "runtime")
            self._guards.base(body.base_digest, self.node.confirmed.digest, self._releases.on_disk(old))
            base = self._releases.manifest(old)
            files, same, commands = runtime.prepare(body, base, old, self._guards.safe_word)
            with self.node.failing_aloud(body.generation, "runtime"):
                draft = self._releases.prepare(body.generation, files, old, same)
                self._write_node_cfg(draft, body.manifest, body.generation)
                certificates.try_out(commands.certificates, self._proxy)
                known = {"manifest.json", *commands.certificates.paths}
                if files.keys() - known - {path for path in files if path.startswith("maps/")}:
                    self._unless_it_crashes(self._check, draft, body.manifest, body.generation)
                release = self._releases.seal(draft, body.generation)
                self._releases.point_live(release)
                self._run(commands, old)
                self.node.remember(release, body.manifest, body.generation)
        return self.node.state()

    def take_tickets(self, secrets: tuple[str, ...]) -> dict[str, Any]:
        """Encrypt session tickets with keys made from these secrets from now on; raises Refusal or OSError."""
        with self.node.switching:
            self.node.tickets.take(secrets, self._proxy, running=self._releases.live() is not None)
        self.node.events.add("state", "session tickets have other keys")
        return self.node.state()

    def _run(self, commands: runtime.Commands, old: Path) -> None:
        """Tell the worker; where it does not follow, the old release is put back. Raises Refusal."""
        try:
            self.node.leaving |= runtime.run(commands, self._proxy, self._guards.safe_word)
            self.node.leaving -= {"/".join(each) for each in commands.added}
        except (Refusal, OSError) as error:
            put_back(self.node, old, self.node.confirmed.generation)
            message = error.message if isinstance(error, Refusal) else f"The worker did not answer: {error}."
            raise Refusal(message, "runtime") from error

    def _fence(self, generation: int) -> None:
        self._guards.fence(generation, self.node.confirmed.generation)
        if self.node.stopping:
            raise Unavailable("This agent is stopping.", "switch")

    def _check_words(self, body: BundleBody) -> None:
        """What programs with more rights than haproxy would read."""
        for path in MOVED_BY.values():
            if path in body.files:
                self._guards.check_allowlist(path, body.files[path].decode("latin-1"))

    def _draft(self, body: BundleBody) -> Path:
        draft = self._releases.prepare(body.generation, body.files, None, frozenset())
        self._write_node_cfg(draft, body.manifest, body.generation)
        return draft

    def _try(self, release: Path, body: BundleBody, until: str = "trial_run") -> None:
        """All that is asked of a release, up to a stage, before it takes the place of another one."""
        self._check_words(body)
        self._unless_it_crashes(self._check, release, body.manifest, body.generation)
        self._guards.addresses(self._addresses, release, body.manifest)
        if until == "trial_run":
            self._unless_it_crashes(self._trial_run, release, body.manifest, body.generation)

    def _check(self, release: Path, _manifest: Manifest, _generation: int) -> None:
        self._guards.check(self._sandbox, release, release / "node.cfg")

    def _trial_run(self, release: Path, manifest: Manifest, generation: int) -> None:
        self._guards.trial_run(self._settings, self._sandbox, release, manifest, generation, self.node.probe_secret)

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
            if (live := self._releases.live()) is not None:
                attempt(live, self._releases.manifest(live), self.node.confirmed.generation)
            raise Refusal(f"{crash.message} It crashes each time, and only on these files.", crash.stage) from crash

    def _write_node_cfg(self, draft: Path, manifest: Manifest, generation: int) -> None:
        self.node.tickets.provide((draft / "haproxy.cfg").read_text("latin-1"))
        text = self.node.node_cfg(manifest, generation)
        write_file(draft / "node.cfg", text.encode(), readable_group(self._settings))
        for name, content in self._addresses.node_files(manifest).items():
            write_file(draft / name, content)

    def _endpoints(self, release: Path, manifest: Manifest) -> list[tuple[str, Endpoint]]:
        """What a release binds on this node: listeners, and the port on which the peers meet this one."""
        found = [(bind.listener_id, Endpoint(*nodecfg.endpoint(self._settings, bind))) for bind in manifest.binds]
        if self._proxy.build().http3:
            with_udp = {bind.listener_id for bind in manifest.binds if bind.http3}
            found += [(name, replace(each, udp=True)) for name, each in found if name in with_udp]
        config = release / "haproxy.cfg"  # the live one may have been taken away: a push repairs that
        peer = nodecfg.peer_endpoint(config.read_text(), self.node.id_of(manifest)) if config.is_file() else None
        return [*found, ("peers", Endpoint(*peer))] if peer else found

    def _held(self) -> set[Endpoint] | None:
        """What haproxy binds now; None where its manifest was damaged, and nobody can tell: a push repairs that."""
        live = self._releases.live()
        if live is None or not self._proxy.running():
            return set()
        with contextlib.suppress(OSError, Malformed):
            return {each for _, each in self._endpoints(live, self._releases.manifest(live))}
        return None

    def _refuse_taken_ports(self, release: Path, manifest: Manifest) -> None:
        """A port that we do not hold yet must be free: haproxy would pause the running listeners while it retries."""
        held = self._held()
        for name, each in self._endpoints(release, manifest):
            if each.port > 65535:
                raise Refusal(f"{name}: port {each.port}, with this node's offset, is above 65535.", "switch")
            moves = each.address in manifest.addresses
            reason = None if held is None or each in held else self._guards.port_taken(each, moves)
            if reason:
                kind = "UDP port" if each.udp else "port"
                raise Refusal(f"{name}: {kind} {each.port} on {each.address} {reason}.", "switch")

    def _respect_gap(self) -> None:
        wait = self.node.last_reload + self._settings.reload_gap - time.monotonic()
        if self.node.last_reload and wait > 0:
            time.sleep(wait)
