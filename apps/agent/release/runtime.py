"""The short way: typed operations become Runtime API commands, and the same change in the files."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.agent.bodies import MOVED_BY, PATH, Manifest, RuntimeBody, sha256
from apps.agent.errors import Malformed, Missing, Refusal
from apps.agent.process.proxy import Proxy
from apps.agent.release import certificates
from apps.agent.release import servers as members

WORD = re.compile(r"[A-Za-z0-9!$%&()*+,./:=?@_|~^-]{1,8192}")
POOL, SERVER = re.compile(r"(?:pool|queue)-[0-9]{1,18}"), re.compile(r"srv-[0-9]{1,18}")
ADD, DELETE = "add_server", "delete_server"
LARGEST_COMMAND = 11_000  # a payload larger than HAProxy's buffer (16 kB) hangs
MANY = 300  # from here on a map is replaced as a whole: prepare, add, commit


@dataclass(frozen=True)
class MapChange:
    """One map: the entries to set (`None` deletes), which of them exist already, and all lines wanted in the end."""

    path: str
    entries: Mapping[str, str | None]
    existing: frozenset[str]
    lines: list[bytes]
    whole: bool


@dataclass(frozen=True)
class Commands:
    """What to tell the worker."""

    maps: tuple[MapChange, ...]
    certificates: certificates.Changes
    servers: tuple[str, ...]
    added: tuple[tuple[str, str], ...] = ()
    deleted: tuple[tuple[str, str], ...] = ()
    config: str = ""


def safe_word(word: str) -> bool:
    """True for a word that the Runtime API cannot take for anything else than a key or a value."""
    return bool(WORD.fullmatch(word))


def prepare(
    body: RuntimeBody, base: Manifest, release: Path, safe: Callable[[str], bool] = safe_word
) -> tuple[dict[str, bytes], frozenset[str], Commands]:
    """The files to write, the paths that stay as they are, and the commands; raises Refusal or Missing.

    1. Read the operations, from an allow-list alphabet only.
    2. Apply map operations to the lines on disk.
    3. Every other file must be unchanged or be there in full.
    4. Every digest must come out as wanted.
    """
    wanted = body.manifest.files
    shown = certificates.prepare(body, base, release)
    servers, by_map, replaced = _sort(body.operations, safe)
    missing = [
        path
        for path, digest in wanted.items()
        if path not in body.files and base.files.get(path) != digest and (path not in by_map or path in replaced)
    ]
    if missing:
        raise Missing(missing)
    changes = [_map_change(path, entries, release, body, path in replaced) for path, entries in by_map.items()]
    files = {
        path: content for path, content in body.files.items() if path in wanted and base.files.get(path) != wanted[path]
    }
    files.update({change.path: b"".join(change.lines) for change in changes})
    for path, content in files.items():
        if sha256(content) != wanted.get(path):
            raise Refusal(f"The operations do not lead to the wanted content of {path}.", "runtime")
    silent = {path for path in files if path.startswith(("maps/", "certs/", "secrets/", *MOVED_BY.values()))}
    if silent - by_map.keys() - shown.paths or _named(body.manifest) != _named(base):
        raise Refusal("The change needs a reload.", "runtime")
    same = frozenset(wanted.keys() - files.keys())
    moved = {kind: tuple(_servers(body.operations, kind)) for kind in (ADD, DELETE)}
    config = files.get("haproxy.cfg", b"").decode("latin-1")
    for pool, server in moved[ADD]:
        members.words_of(config, pool, server)
    commands = Commands(tuple(changes), shown, tuple(servers), moved[ADD], moved[DELETE], config)
    return {**files, "manifest.json": body.manifest.raw}, same, commands


def _named(manifest: Manifest) -> tuple[object, ...]:
    """What a running worker cannot be told."""
    return manifest.binds, manifest.nodes, manifest.addresses


def _sort(
    operations: tuple[Mapping[str, Any], ...], safe: Callable[[str], bool]
) -> tuple[list[str], dict[str, dict[str, str | None]], set[str]]:
    servers: list[str] = []
    by_map: dict[str, dict[str, str | None]] = {}
    replaced: set[str] = set()
    for each in operations:
        kind = each.get("op")
        if kind == "set_map_entry":
            by_map.setdefault(_map(each), {})[_word(each, "key", safe)] = _word(each, "value", safe)
        elif kind == "delete_map_entry":
            by_map.setdefault(_map(each), {})[_word(each, "key", safe)] = None
        elif kind == "replace_map":
            replaced.add(_map(each))
            by_map.setdefault(_map(each), {})
        elif kind not in certificates.OPERATIONS and kind not in (ADD, DELETE):
            servers.append(_server_command(each))
    return servers, by_map, replaced


def _servers(operations: tuple[Mapping[str, Any], ...], kind: str) -> Iterator[tuple[str, str]]:
    return (_ids(each) for each in operations if each.get("op") == kind)


def _ids(each: Mapping[str, Any]) -> tuple[str, str]:
    pool, server = str(each.get("pool_id")), str(each.get("server_id"))
    if not POOL.fullmatch(pool) or not SERVER.fullmatch(server):
        raise Malformed("A server operation needs pool_id and server_id.")
    return pool, server


def _server_command(each: Mapping[str, Any]) -> str:
    pool, server = _ids(each)
    if each.get("op") == "set_server_weight":
        weight = each.get("weight")
        if isinstance(weight, bool) or not isinstance(weight, int) or not 0 <= weight <= 256:
            raise Malformed("A weight must lie between 0 and 256.")
        return f"set server {pool}/{server} weight {weight}"
    if each.get("op") == "set_server_maxconn":
        slots = each.get("maxconn")
        if isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= 1_000_000:
            raise Malformed("A server's maxconn must lie between 1 and 1000000.")
        return f"set maxconn server {pool}/{server} {slots}"
    if each.get("op") == "set_server_state" and each.get("state") in ("ready", "drain", "maint"):
        return f"set server {pool}/{server} state {each['state']}"
    raise Malformed(f"There is no such operation: {str(each.get('op'))[:40]!r}.")


def _map(each: Mapping[str, Any]) -> str:
    path = each.get("path")
    if not isinstance(path, str) or not PATH.fullmatch(path) or not path.startswith("maps/"):
        raise Malformed("A map operation needs the path of a map.")
    return path


def _word(each: Mapping[str, Any], name: str, safe: Callable[[str], bool]) -> str:
    value = each.get(name)
    if not isinstance(value, str) or not safe(value):
        raise Refusal(f"A map's {name} has a character that the Runtime API cannot take safely.", "runtime")
    return value


def _map_change(
    path: str, entries: Mapping[str, str | None], release: Path, body: RuntimeBody, replaced: bool
) -> MapChange:
    if replaced:
        if path not in body.files:
            raise Missing([path])
        lines = body.files[path].splitlines(keepends=True)
        return MapChange(path, {}, frozenset(), lines, True)
    lines = (release / path).read_bytes().splitlines(keepends=True)
    existing = set()
    for key, value in sorted(entries.items()):
        start = key.encode() + b" "
        at = bisect_left(lines, start)
        found = at < len(lines) and lines[at].startswith(start)
        if found:
            existing.add(key)
        lines[at : at + found] = [] if value is None else [start + value.encode() + b"\n"]
    return MapChange(path, entries, frozenset(existing), lines, len(entries) >= MANY)


def run(commands: Commands, proxy: Proxy, safe: Callable[[str], bool] = safe_word) -> frozenset[str]:
    """Tell the worker; which servers leave and still have connections.

    Raises Refusal when it objects, OSError when it does not answer.
    """
    for pool, server in commands.added:
        members.add(proxy, commands.config, pool, server)
    for change in commands.maps:
        if change.whole:
            replace_map(change.path, change.lines, proxy, safe)
        else:
            _quiet(proxy, [_entry_command(change, key, value) for key, value in change.entries.items()])
    certificates.change(commands.certificates, proxy)
    _quiet(proxy, list(commands.servers))
    return frozenset(name for name in map("/".join, commands.deleted) if not members.leave(proxy, name))


def _entry_command(change: MapChange, key: str, value: str | None) -> str:
    if value is None:
        return f"del map {change.path} {key}" if key in change.existing else ""
    return f"{'set' if key in change.existing else 'add'} map {change.path} {key} {value}"


def _quiet(proxy: Proxy, commands: list[str]) -> None:
    """Send commands that answer nothing when they succeed, many on a line."""
    for chunk in _chunks([each for each in commands if each], ";"):
        answer = proxy.worker(chunk).strip()
        if answer:
            raise Refusal(f"HAProxy objects: {answer.splitlines()[0]}", "runtime", output=answer)


def replace_map(path: str, lines: list[bytes], proxy: Proxy, safe: Callable[[str], bool] = safe_word) -> None:
    """Prepare a new version of the map, fill it, and make it the valid one at once."""
    answer = proxy.worker(f"prepare map {path}")
    found = re.search(r"New version created: (\d+)", answer)
    if not found:
        raise Refusal(f"HAProxy objects: {answer.strip()}", "runtime", output=answer)
    version = found.group(1)
    rows = [line.decode().rstrip("\n") for line in lines]
    for row in rows:
        key, _, value = row.partition(" ")
        if not safe(key) or not safe(value):
            raise Refusal("A map's entry has a character that the Runtime API cannot take safely.", "runtime")
    for chunk in _chunks(rows, "\n"):
        answer = proxy.worker(f"add map @{version} {path} <<\n{chunk}\n").strip()
        if answer:
            raise Refusal(f"HAProxy objects: {answer.splitlines()[0]}", "runtime", output=answer)
    _quiet(proxy, [f"commit map @{version} {path}"])


def _chunks(parts: list[str], separator: str) -> list[str]:
    """Join parts to texts that stay below the buffer's size."""
    chunks: list[str] = []
    size = LARGEST_COMMAND + 1
    texts: list[list[str]] = []
    for part in parts:
        if size + len(part) + 1 > LARGEST_COMMAND:
            texts.append([])
            size = 0
        texts[-1].append(part)
        size += len(part) + 1
    chunks.extend(separator.join(text) for text in texts)
    return chunks
