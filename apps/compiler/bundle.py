"""The output: the exact files that a HAProxy node runs, and their digest.

A bundle does not know where it will lie: `haproxy.cfg` names its maps relative to itself
(`default-path config`) and takes every address, directory and number that differs from node to node from
environment variables that the agent sets in a small `node.cfg` of its own. So the bytes are the same on
every node of a fleet, and the trial run on spare ports runs the very file that will go live.

| variable | meaning | set by |
|---|---|---|
| `SPILLWAY_RUN` | private directory of this process's sockets | agent |
| `SPILLWAY_GENERATION`, `SPILLWAY_DIGEST` | what this worker runs; answered on the probe path | agent |
| `SPILLWAY_PROBE` | secret path segment of the probe, new for each node | agent |
| `SPILLWAY_NODE` | id of this node (`node-5`), under which it counts as a peer | agent, from `manifest.nodes` |
| `SPILLWAY_RESOLVER` | where the agent answers for names of servers | agent |
| `SPILLWAY_TICKETS` | folder with the keys of session tickets, a file for each listener | agent |
| `SPILLWAY_BIND_<listener id, upper case, - as _>` | `address:port` of one listener | agent, from `manifest.binds` |
| `SPILLWAY_HTTP3_<the same>` | `quic4@address:port`, where HAProxy of this node speaks HTTP/3 | the same |

Where static IPs move among the nodes, `keepalived.conf` and `bird.conf` lie beside it, equal on every node as well: the
agent writes `node-vrrp.conf` and `node-bird.conf`, which include them (see `apps/agent/static_ips/`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MANIFEST = "manifest.json"
# Files for nodes alone: private keys, and the word by which fleets know each other.
FOR_NODES_ALONE = ("certs/", "secrets/")
_SECRET = re.compile(r"(?m)^(\s*(?:user \S+ password|cluster-secret) )\S.*$")
# Read by the agent as it resolves, and by no running worker: a change of it alone goes the long way.
REFUSED_ADDRESSES = "maps/refused-addresses.map"


@dataclass(frozen=True, slots=True)
class Bind:
    """Where a listener binds: `address` None stands for the node's own address; `http3` takes the port of UDP too."""

    listener_id: str
    address: str | None
    port: int
    protocol: str
    http3: bool = False

    @property
    def variable(self) -> str:
        """Name of the environment variable that carries `address:port` into haproxy.cfg."""
        return bind_variable(self.listener_id)


def bind_variable(listener_id: str) -> str:
    """`lst-2` → `SPILLWAY_BIND_LST_2`."""
    return "SPILLWAY_BIND_" + listener_id.upper().replace("-", "_")


def http3_variable(listener_id: str) -> str:
    """`lst-2` → `SPILLWAY_HTTP3_LST_2`."""
    return "SPILLWAY_HTTP3_" + listener_id.upper().replace("-", "_")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files by relative path (`haproxy.cfg`, `maps/…`, `certs/…`, `manifest.json`) and their digest.

    `digest` is the SHA-256 (hex) over path and content digest of every file, sorted by path. `line_owners`
    says which object wrote which line of haproxy.cfg (1-based), so that a refusal can name the object. `nodes` maps
    what each node of the region calls itself to its id, so that a node knows which peer it is. `addresses` maps each
    address that moves to `vip` or `anycast`: the node need not have it when a listener binds it.
    """

    files: Mapping[str, bytes]
    digest: str
    binds: tuple[Bind, ...]
    line_owners: Mapping[int, str] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)


def for_people(content: bytes) -> str:
    """A file of those that people may read, without the hashes of passwords and what nodes alone know."""
    return _SECRET.sub(r"\1(not shown)", content.decode())


def digest_of(content: bytes) -> str:
    """SHA-256 of one file, hex."""
    return hashlib.sha256(content).hexdigest()


def digest_of_all(file_digests: Mapping[str, str]) -> str:
    """SHA-256 (hex) over `path NUL digest LF` of every file but the manifest, sorted by path."""
    whole = hashlib.sha256()
    for path in sorted(file_digests):
        if path != MANIFEST:
            whole.update(f"{path}\0{file_digests[path]}\n".encode())
    return whole.hexdigest()


def assemble(
    files: Mapping[str, bytes],
    binds: tuple[Bind, ...],
    line_owners: Mapping[int, str],
    nodes: Mapping[str, str] | None = None,
    addresses: Mapping[str, str] | None = None,
) -> Bundle:
    """Add `manifest.json` to the compiled files and seal them.

    The manifest is `{"digest", "files": {path: sha256}, "binds": [{listener_id, address, port, protocol}],
    "nodes": {name: id}, "addresses": {address: kind}}`;
    it carries no generation, which belongs to a push and not to the content.
    """
    file_digests = {path: digest_of(content) for path, content in files.items()}
    digest = digest_of_all(file_digests)
    manifest = {
        "digest": digest,
        "files": dict(sorted(file_digests.items())),
        "binds": [
            {
                "listener_id": bind.listener_id,
                "address": bind.address,
                "port": bind.port,
                "protocol": bind.protocol,
                **({"http3": True} if bind.http3 else {}),
            }
            for bind in binds
        ],
        "nodes": dict(nodes or {}),
        "addresses": dict(addresses or {}),
    }
    content = json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n"
    sealed = {**files, MANIFEST: content}
    return Bundle(sealed, digest, binds, line_owners, dict(nodes or {}), dict(addresses or {}))
