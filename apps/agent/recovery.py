"""Its start: finds out what runs, and finishes or starts what is needed."""

from __future__ import annotations

from pathlib import Path

from apps.agent.errors import FAILURES, Malformed
from apps.agent.node import Node
from apps.agent.release.confirm import worker_identity
from apps.agent.switch import reload


def recover(node: Node) -> None:
    """Find out at the agent's start what runs, and finish or start what is needed.

    1. Nothing was ever switched: nothing to do.
    2. `live` is what was confirmed and haproxy runs it: adopt it.
    3. haproxy runs, but the agent died between switch and confirmation: roll forward, the trial run went well.
    4. haproxy runs what nobody switched to: somebody else started it, and its master would only ever read the same
       files again. It is ended.
    5. haproxy does not run: start from `live`, or from the last known good when that fails.
    """
    with node.switching:
        live = node.releases.live()
        if live is None:
            return
        found = node.proxy.processes_soon()
        if found:
            for pid in node.proxy.end_others(found.master):
                node.events.add("error", f"haproxy {pid} ran beside {found.master} and is ended")
        if found and not node.addresses.expects(worker_identity(node.proxy)):
            node.events.add("error", f"haproxy {found.master} was started by somebody else and is ended")
            node.proxy.stop()
        elif found and live.name == node.confirmed.release:
            node.events.add("state", f"took over haproxy {found.master}, generation {node.confirmed.generation}")
            take_over_addresses(node, live)
            return
        try:
            _bring_up(node, live)
        except (*FAILURES, Malformed) as error:
            node.note_error(f"The live configuration could not be started: {error}")
            _fall_back(node, live)


def take_over_addresses(node: Node, live: Path) -> None:
    """Find keepalived and BIRD again, or start them; haproxy goes on in any case."""
    try:
        node.addresses.bring(live, node.releases.manifest(live))
    except (*FAILURES, Malformed) as error:
        node.note_error(f"The static IPs could not be taken over: {error}")


def _bring_up(node: Node, release: Path) -> None:
    manifest = node.releases.manifest(release)
    generation = int(release.name.partition("-")[0])
    node.releases.point_live(release)
    reload(node, release, manifest, generation)
    node.remember(release, manifest, generation, reloaded=True)
    node.events.add("state", f"haproxy runs generation {generation}")


def _fall_back(node: Node, failed: Path) -> None:
    """Start what soaked last, else what was confirmed last; the error stays readable."""
    reason = node.confirmed.last_error
    for name in dict.fromkeys((node.confirmed.last_known_good, node.confirmed.release)):
        release = node.releases.path(name) if name else None
        if release is None or release == failed or not release.is_dir():
            continue
        try:
            _bring_up(node, release)
        except (*FAILURES, Malformed) as error:
            node.note_error(f"{reason} The last known good one could not be started either: {error}")
        else:
            node.note_error(f"{reason} The last known good generation {node.confirmed.generation} runs instead.")
            return
