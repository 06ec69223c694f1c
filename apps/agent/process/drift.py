"""What differs from the confirmed configuration, in words."""

from __future__ import annotations

import re
from pathlib import Path

from apps.agent.bodies import Manifest
from apps.agent.errors import Malformed
from apps.agent.node import Node
from apps.agent.process.sockets import listening
from apps.agent.release import nodecfg
from apps.agent.release.confirm import ask, rounds

MAP_LINE = re.compile(r"^\d+ \(((?:maps|secrets)/[^)]+)\).*entry_cnt=(\d+)", re.MULTILINE)
COMPARED_IN_FULL = 20_000


def find_drift(node: Node) -> None:
    """Look at the files, the worker's maps and who answers on the ports; the words land in `node.drift`."""
    if not node.switching.acquire(blocking=False):
        return
    try:
        live = node.releases.live()
        if live is None or not node.proxy.running():
            return
        try:
            manifest = node.releases.manifest(live)
            words = [*_files(node, live, manifest), *_maps(node, live, manifest), *_ports(node, live, manifest)]
            words += node.addresses.drift(live, manifest)
        except (OSError, Malformed) as error:
            words = [f"the live files cannot be read: {error}"]
        for word in set(words) - set(node.drift):
            node.events.add("error", f"drift: {word}")
        node.drift = tuple(words)
    finally:
        node.switching.release()


def _files(node: Node, live: Path, manifest: Manifest) -> list[str]:
    found = node.releases.file_digests(live)
    words = [f"{path} was edited" for path in manifest.files if found.get(path, "") != manifest.files[path]]
    words += [f"{path} does not belong here" for path in found if path not in manifest.files]
    if (live / "node.cfg").read_text() != node.node_cfg(manifest, node.confirmed.generation):
        words.append("node.cfg was edited")
    if live.name != node.confirmed.release:
        words.append(f"live points to {live.name} and not to {node.confirmed.release}")
    return words


def _maps(node: Node, live: Path, manifest: Manifest) -> list[str]:
    words = []
    for path, count in MAP_LINE.findall(node.proxy.worker("show map")):
        if path not in manifest.files:
            continue
        lines = (live / path).read_bytes().decode().splitlines()
        wanted = {line for line in lines if line and not line.startswith("#")}
        if len(wanted) != int(count):
            words.append(f"{path} has {count} entries in the worker and {len(wanted)} in the file")
        elif len(wanted) <= COMPARED_IN_FULL and wanted != _entries(node, path):
            words.append(f"{path} was changed in the worker")
    return words


def _entries(node: Node, path: str) -> set[str]:
    """Entries of a map in the worker, without the pointer that stands before each."""
    text = node.proxy.worker(f"show map {path}", timeout=10.0)
    return {line.partition(" ")[2] for line in text.splitlines() if line.strip()}


def _ports(node: Node, live: Path, manifest: Manifest) -> list[str]:
    words = []
    there = listening() if any(bind.protocol == "tcp" for bind in manifest.binds) else None
    for bind in manifest.binds:
        address, port = nodecfg.endpoint(node.settings, bind)
        for _ in range(rounds(bind, 8)):
            answer = ask(node.settings, manifest, bind, node.probe_secret, live, there)
            if answer.problem:
                words.append(f"{bind.listener_id}: {answer.problem} on {nodecfg.written(address, port)}")
                break
    return words
