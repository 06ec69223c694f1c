"""One load balancer as files that HAProxy runs without us: a plain haproxy.cfg with its maps and certificates.

The same compiler writes them; what a node's agent would say (ports, folders, the probe) is written out or left out.
Counting with other nodes, overflow and bypass tokens are left out: they need nodes that know each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from apps.compiler.bundle import MANIFEST, REFUSED_ADDRESSES, Bundle, bind_variable
from apps.compiler.compile import Compilation, compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import LoadBalancer

CONFIG = "haproxy.cfg"
HEAD = """\
# Load balancer {name}, as HAProxy {version} or later runs it by itself.
# In the folder of this file: haproxy -c -f haproxy.cfg checks it, haproxy -f haproxy.cfg runs it.
# Routes are entries of maps/: host and path lead to a route (…-exact.map, …-prefix.map), a route to a pool
# (…-action.map). After a change of a map, reload HAProxy.
"""
# Lines that only an agent needs.
_OF_AGENTS = re.compile(
    r"SPILLWAY_PROBE|setenv SPILLWAY|SPILLWAY_GENERATION|load-server-state-from-file|hard-stop-after|"
    r"^    master-worker$"
)
_DEFINED = re.compile(r"^\s*\.if defined\(SPILLWAY_[A-Z0-9_]+\)")
_VALUES = {
    '"${SPILLWAY_RUN}/worker.sock"': "/run/haproxy/admin.sock",
    '"${SPILLWAY_LOG-emerg}"': "info",
    "${SPILLWAY_CONNECTIONS-2000000}": "2000000",
    "${SPILLWAY_RUN}": "/run/haproxy",
    "${SPILLWAY_NODE}": "node-1",
}
_SECTION = re.compile(r"^(frontend|backend|defaults|resolvers|global)\b ?(\S*)")


class NotAlone(Exception):
    """The load balancer needs what only nodes of a fleet have."""


def standalone(snapshot: Snapshot, load_balancer_id: str) -> Compilation[Mapping[str, bytes]]:
    """Files by path of one load balancer of a fleet. Raises NotAlone, and CompileError as compiling does."""
    by_itself = alone(snapshot, load_balancer_id)
    (found,) = by_itself.load_balancers
    compilation = compile_snapshot(by_itself)
    names = {pool.id: pool.label for pool in snapshot.pools}
    names |= {listener.id: f"listener {listener.label}" for listener in found.listeners}
    text = "\n".join(_lines(compilation.output, snapshot, found, names)) + "\n"
    if "SPILLWAY" in text:
        raise NotAlone(f"{found.label} has a part that only an agent can run.")
    files = {path: content for path, content in compilation.output.files.items() if _is_kept(path)}
    return Compilation({**files, CONFIG: text.encode()}, compilation.left_out, compilation.warnings)


def _is_kept(path: str) -> bool:
    return path not in (MANIFEST, CONFIG, REFUSED_ADDRESSES) and not path.endswith((".conf", "refused-addresses.map"))


def alone(snapshot: Snapshot, load_balancer_id: str) -> Snapshot:
    """The load balancer with its pools, on a node that knows no other one. Raises NotAlone."""
    found = next((each for each in snapshot.load_balancers if each.id == load_balancer_id), None)
    if found is None:
        raise NotAlone(f"The fleet {snapshot.fleet} does not run this load balancer.")
    named = {share.pool_id for route in found.routes for share in route.pools}
    named |= {key for listener in found.listeners for key in listener.pool_ids}
    pools = tuple(replace(pool, elsewhere=()) for pool in snapshot.pools if pool.id in named)
    return replace(
        snapshot,
        load_balancers=(found,), pools=pools, regions=(), region_id="", overflow_key="", bypass_tokens=(),
        addresses=(), unreadable=(), shares=(), loop_mark="", own_addresses=(),
    )  # fmt: skip


def _lines(bundle: Bundle, snapshot: Snapshot, found: LoadBalancer, names: Mapping[str, str]) -> Iterator[str]:
    version = ".".join(map(str, snapshot.haproxy_version))
    yield HEAD.format(name=found.label, version=version)
    values = {
        f'"${{{bind_variable(bind.listener_id)}}}"': f"{_bracketed(bind.address or '*')}:{bind.port}"
        for bind in bundle.binds
    } | _VALUES
    for line in _without_agents(bundle.files[CONFIG].decode().splitlines()):
        section = _SECTION.match(line)
        if section and section[2] in names:
            yield f"# {section[1]} of {names[section[2]]}"
        if line.strip() and not line.startswith(("    ", "\t", ".")) and section is None:
            yield line
            continue
        for name, value in values.items():
            line = line.replace(name, value)  # noqa: PLW2901 - several values may stand in one line
        yield line


def _without_agents(lines: list[str]) -> Iterator[str]:
    """Blocks that ask whether an agent said something are decided: none did."""
    skipping, inside = False, False
    for line in lines:
        word = line.strip()
        if _DEFINED.match(line):
            skipping = inside = True
        elif inside and word == ".else":
            skipping = False
        elif inside and word == ".endif":
            skipping = inside = False
        elif not skipping and not _OF_AGENTS.search(line):
            yield line


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
