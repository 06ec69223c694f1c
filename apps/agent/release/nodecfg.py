"""node.cfg: the few lines that make the fleet's haproxy.cfg fit this node."""

from __future__ import annotations

import re
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from apps.agent.bodies import Bind, Manifest
from apps.agent.settings import Settings

# Of a trial, and of a node that the manifest does not name. No peer is called so, and HAProxy then leaves the peers
# out: it neither counts with them nor cuts them off. Without a word it would take the machine's own name.
UNKNOWN_NODE = "node-0"
LARGEST = 10_000_000
# As Build.http3 (process/proxy.py), in the words of haproxy.
HAS_HTTP3 = "feature(QUIC) && version_atleast(2.8)"
PEER = re.compile(r"^\s+peer (\S+) (\S+):(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Endpoint:
    """What a process binds: a port of TCP, or of UDP."""

    address: str
    port: int
    udp: bool = False


@dataclass(frozen=True)
class Surroundings:
    """What one haproxy process finds around it.

    `run_dir` has its sockets, the file `health` what the last worker knew of servers, `tickets` the keys of session
    tickets; `resolver` (`address:port`) answers for names; `log` is the level of request lines, empty where nobody
    reads them.
    """

    run_dir: Path
    health: Path
    resolver: str
    tickets: Path
    log: str = ""


def endpoint(settings: Settings, bind: Bind) -> tuple[str, int]:
    """Address and port of a listener on this node: a static address as it is, else the node's own plus its offset."""
    if bind.address is not None:
        return bind.address, bind.port
    return settings.address, bind.port + settings.port_offset


def private_socket(settings: Settings, bind: Bind) -> Path:
    """Where haproxy answers for a listener whose address another node may have just now."""
    return settings.run_dir / f"{bind.listener_id}.sock"


def peer_endpoint(config: str, node: str) -> tuple[str, int] | None:
    """Where haproxy.cfg has this node (`node-5`) listen for its peers; None when it is none of them."""
    for name, address, port in PEER.findall(config):
        if name == node:
            return address.strip("[]"), int(port)
    return None


def written(address: str, port: int) -> str:
    """`127.0.0.1:80`, `[::1]:80`."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def connections() -> int:
    """About as many as haproxy can have at a time: it gets this process's limit, and each takes two of it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return LARGEST if most == resource.RLIM_INFINITY else max(1, min(most // 2, LARGEST))


def render(
    manifest: Manifest,
    *,
    generation: int,
    probe: str,
    around: Surroundings,
    endpoints: Mapping[str, tuple[str, int]],
    node: str = UNKNOWN_NODE,
    rights: tuple[str, Path] | None = None,
) -> str:
    """Text of node.cfg; `rights` are the user to become and the empty directory to be locked into.

    `node` is this node's id, under which it
    counts with its peers.
    """
    values = {
        "SPILLWAY_RUN": str(around.run_dir),
        "SPILLWAY_GENERATION": str(generation),
        "SPILLWAY_DIGEST": manifest.digest,
        "SPILLWAY_PROBE": probe,
        "SPILLWAY_NODE": node,
        "SPILLWAY_CONNECTIONS": str(connections()),
        "SPILLWAY_RESOLVER": around.resolver,
        "SPILLWAY_TICKETS": str(around.tickets),
    }
    if around.log:
        values["SPILLWAY_LOG"] = around.log
    for bind in manifest.binds:
        values[bind.variable] = written(*endpoints[bind.listener_id])
    lines = ["global", *(f'    setenv {name} "{value}"' for name, value in values.items())]
    if manifest.nodes:
        lines.append(f"    localpeer {node}")
    lines.append(f"    server-state-file {around.health}")
    lines += _http3(manifest, endpoints)
    if rights is not None:
        user, cell = rights
        lines += [f"    user {user}", f"    chroot {cell}"]
    return "\n".join(lines) + "\n"


def _http3(manifest: Manifest, endpoints: Mapping[str, tuple[str, int]]) -> list[str]:
    """Where listeners take HTTP/3. Whatever haproxy reads this: haproxy.cfg leaves out what is not set here.

    Some are built with a TLS library that knows no QUIC, and have a layer of their own that must be asked for.
    """
    used = [(bind, *endpoints[bind.listener_id]) for bind in manifest.binds if bind.http3]
    if not used:
        return []
    lines = [f"    .if {HAS_HTTP3}"]
    for bind, address, port in used:
        family = "quic6" if ":" in address else "quic4"
        lines.append(f'    setenv {bind.http3_variable} "{family}@{written(address, port)}"')
    return [*lines, "    .endif", "    .if feature(QUIC_OPENSSL_COMPAT)", "    limited-quic", "    .endif"]
