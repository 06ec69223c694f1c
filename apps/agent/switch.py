"""The switch: a release goes live, the new worker confirms it, or the old release is put back."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from apps.agent.bodies import Manifest
from apps.agent.check.load_time import load_seconds
from apps.agent.errors import FAILURES, Malformed
from apps.agent.node import Node
from apps.agent.release.confirm import Wanted


def switch(node: Node, release: Path, manifest: Manifest, generation: int) -> None:
    """Point `live` at the release, reload, confirm, remember; any failure puts the old one back."""
    old = node.releases.live()
    node.releases.point_live(release)
    try:
        reload(node, release, manifest, generation)
    except FAILURES:
        put_back(node, old if old != release else None, node.confirmed.generation)
        raise
    node.remember(release, manifest, generation, reloaded=True)


def put_back(node: Node, old: Path | None, generation: int) -> None:
    """Make the node run the old release again, or nothing where there was none; never raises FAILURES."""
    try:
        node.guards.put_back(node.releases, old)
        if old is None:
            node.addresses.stop()
            node.proxy.stop()
            return
        reload(node, old, node.releases.manifest(old), generation)
    except (*FAILURES, Malformed) as error:
        node.note_error(f"The old configuration was put back and does not answer: {error}")


def reload(node: Node, release: Path, manifest: Manifest, generation: int) -> None:
    """Let a worker load what lies at `live`, wait until it answers, then let it have addresses; raises FAILURES."""
    identity = (generation, manifest.digest)
    node.addresses.switching(manifest, identity, node.probe_secret)
    node.tickets.provide((release / "haproxy.cfg").read_text("latin-1"))
    offset = node.proxy.log_end()
    _hand_on_health(node, release)
    node.log.before_reload()
    with node.counting_closely():
        node.proxy.reload_or_start(release, node.settings.confirm_timeout + load_seconds(release))
        node.last_reload = time.monotonic()
        node.leaving = set()
        wanted = Wanted(release, manifest, generation, node.probe_secret)
        node.guards.confirm(node.settings, node.proxy, wanted, offset)
    node.addresses.switched(manifest, identity, node.probe_secret)
    node.addresses.bring(release, manifest)


def _hand_on_health(node: Node, release: Path) -> None:
    """Write down which servers are down now, so that the next worker does not have to find out by requests."""
    try:
        shown = node.proxy.worker("show servers state", timeout=5.0)
        may_stay = partial(node.resolver.may_stay, release=release)
        node.write_health(shown, (release / "haproxy.cfg").read_text(), may_stay)
    except (OSError, ValueError):
        node.write_health("", "")  # nobody runs: nothing is known
