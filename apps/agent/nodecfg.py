"""PUSH, node.cfg: the few lines that make the fleet's haproxy.cfg fit this node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from apps.agent.bodies import Bind, Manifest
from apps.agent.settings import Settings

UNKNOWN_NODE = "node-0"


def endpoint(settings: Settings, bind: Bind) -> tuple[str, int]:
    """Address and port of a listener on this node: a static address as it is, else the node's own plus its offset."""
    if bind.address is not None:
        return bind.address, bind.port
    return settings.address, bind.port + settings.port_offset


def written(address: str, port: int) -> str:
    """`127.0.0.1:80`, `[::1]:80`."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def render(
    manifest: Manifest,
    *,
    generation: int,
    probe: str,
    run_dir: Path,
    endpoints: Mapping[str, tuple[str, int]],
    health: Path,
    node: str = "",
    peer: str = "",
    rights: tuple[str, Path] | None = None,
) -> str:
    """Text of node.cfg; `rights` are the user to become and the empty directory to be locked into.

    `health` is the file that says which servers were down before a reload. `node` is this node's id, under which it
    counts; `peer` is what it calls itself among the peers, the same or, on trial, a name that none of them has.
    """
    values = {
        "SPILLWAY_RUN": str(run_dir),
        "SPILLWAY_GENERATION": str(generation),
        "SPILLWAY_DIGEST": manifest.digest,
        "SPILLWAY_PROBE": probe,
        "SPILLWAY_NODE": node or UNKNOWN_NODE,
    }
    for bind in manifest.binds:
        values[bind.variable] = written(*endpoints[bind.listener_id])
    lines = ["global", *(f'    setenv {name} "{value}"' for name, value in values.items())]
    if peer:
        lines.append(f"    localpeer {peer}")
    lines.append(f"    server-state-file {health}")
    if rights is not None:
        user, cell = rights
        lines += [f"    user {user}", f"    chroot {cell}"]
    return "\n".join(lines) + "\n"
