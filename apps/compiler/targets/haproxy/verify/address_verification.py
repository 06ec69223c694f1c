"""Config verification of keepalived.conf and bird.conf; independent readers say what each node would really do.

They share no code with the writers: lines of other nodes are dropped as keepalived drops them, blocks are read by their
braces, and what comes out must be the addresses that were meant, on every node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from apps.compiler.model.fleet import FleetAddress, FleetAddressKind, RegionNode
from apps.compiler.model.shared import Finding

_WORDS = re.compile(r"[A-Za-z0-9_.:/@^${}\";=*!-]+(?: [A-Za-z0-9_.:/@^${}\";=*!-]+)*")
_ROUTE = re.compile(r"route (\S+) blackhole;")
_GATE = "filter announced {\n    if !announcing then reject;\n"


@dataclass(frozen=True, slots=True)
class Instance:
    """What one node does for one address: `source` is its own address, `peers` those of the others."""

    router_id: int
    priority: int
    source: str
    peers: frozenset[str]
    addresses: tuple[str, ...]
    checked: bool


def check_vrrp(
    text: str, path: str, addresses: Sequence[FleetAddress], nodes: Mapping[str, RegionNode]
) -> list[Finding]:
    """Each node finds exactly its addresses, its peers, and a priority that no other node has."""
    moving = [each for each in addresses if each.kind is FleetAddressKind.VIP]
    if not _is_plain(text):
        return [_finding(path, "holds a line that is no plain words")]
    seen: dict[str, set[int]] = {}
    for node in sorted({node for each in moving for node in each.nodes}):
        found = read_vrrp(text, node)
        for name, instance in found.items():
            if instance.priority in seen.setdefault(name, set()):
                return [_finding(path, f"gives two nodes one priority for {name}")]
            seen[name].add(instance.priority)
        if {name: _meaning(instance) for name, instance in found.items()} != _meant(moving, node, nodes):
            return [_finding(path, f"does not say on {node} what was meant")]
    return [] if bool(text) == bool(moving) else [_finding(path, "is there or missing against what was meant")]


def _meant(moving: Sequence[FleetAddress], node: str, nodes: Mapping[str, RegionNode]) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for each in moving:
        others = frozenset(nodes[name].address for name in each.nodes if name != node)
        own = nodes[node].address if others else ""
        host = each.address + ("/128" if ":" in each.address else "/32")
        found[each.id] = (each.router_id, own, others, (host,), True)
    return found


def _meaning(instance: Instance) -> tuple[object, ...]:
    return (instance.router_id, instance.source, instance.peers, instance.addresses, instance.checked)


def read_vrrp(text: str, node: str) -> dict[str, Instance]:
    """The instances of keepalived.conf as the node of this id reads them, by name."""
    found: dict[str, dict[str, list[list[str]]]] = {}
    path: list[str] = []
    for words in _lines_of(text, node):
        if words[-1] == "{":
            path.append(" ".join(words[:-1]))
        elif words == ["}"]:
            path.pop()
        elif path and path[0].startswith("vrrp_instance "):
            block = found.setdefault(path[0].split()[1], {})
            key = path[1] if len(path) > 1 else words[0]
            block.setdefault(key, []).append(words if len(path) > 1 else words[1:])
    return {name: _instance(block) for name, block in found.items()}


def _lines_of(text: str, node: str) -> Iterator[list[str]]:
    """The words of each line that counts on the node: `@id` is for that node alone, `@^id` for all others."""
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0].startswith("@"):
            label = words.pop(0)[1:]
            if (label.removeprefix("^") == node) == label.startswith("^"):
                continue
        yield words


def _instance(block: Mapping[str, list[list[str]]]) -> Instance:
    def only(key: str) -> str:
        values = block.get(key, [])
        return values[0][0] if len(values) == 1 and values[0] else ""

    return Instance(
        router_id=int(only("virtual_router_id") or 0),
        priority=int(only("priority") or 0),
        source=only("unicast_src_ip"),
        peers=frozenset(words[0] for words in block.get("unicast_peer", [])),
        addresses=tuple(words[0] for words in block.get("virtual_ipaddress", [])),
        checked=block.get("track_script") == [["haproxy"]],
    )


def check_anycast(text: str, path: str, addresses: Sequence[FleetAddress]) -> list[Finding]:
    """Exactly the wanted host routes stand there, and nothing is announced before `announcing` says so."""
    meant = {each.address for each in addresses if each.kind is FleetAddressKind.ANYCAST}
    if not _is_plain(text):
        return [_finding(path, "holds a line that is no plain words")]
    routes = _ROUTE.findall(text)
    wanted = sorted(f"{each}/{128 if ':' in each else 32}" for each in meant)
    gated = text.count("accept;") == 0 or text.count(_GATE) == text.count("filter ") == 1
    if sorted(routes) != wanted or text.count("route ") != len(routes) or not gated:
        return [_finding(path, "does not announce exactly what was meant")]
    return []


def _is_plain(text: str) -> bool:
    return text.isascii() and all(_WORDS.fullmatch(line.strip()) for line in text.splitlines() if line.strip())


def _finding(path: str, what: str) -> Finding:
    return Finding("config_verification", path, path, f"Config verification refuses {path}: it {what}.")
