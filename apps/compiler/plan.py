"""The decision: what brings a running bundle to the wanted one, at the lowest price.

Pure: it compares the files of two bundles and nothing else, so it cannot know more than the node does. The files
on disk are always brought to the wanted state as well; every operation here leaves the running process in the state
in which a restart from those files would start it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from apps.compiler.bundle import MANIFEST, REFUSED_ADDRESSES, Bundle
from apps.compiler.model.operations import (
    DeleteMapEntry,
    Operation,
    ReplaceMap,
    SetMapEntry,
    SetServerMaxconn,
    SetServerState,
    SetServerWeight,
)
from apps.compiler.targets.haproxy import certificate_changes as certificates
from apps.compiler.targets.haproxy.reader import Statement, read_config, read_map
from apps.compiler.targets.haproxy.servers.changes import compare_servers

CONFIG = "haproxy.cfg"

# From here on it is cheaper, and safer for who watches, to swap the map at once than to change entry by entry.
REPLACE_ABOVE = 2000


@dataclass(frozen=True, slots=True)
class Nothing:
    """The bundles are equal."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """Operations on the running process, in the order in which they are safe."""

    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Reload:
    """A new worker is needed; `reasons` say why, in words."""

    reasons: tuple[str, ...]


Plan = Nothing | Runtime | Reload


def plan(running: Bundle, wanted: Bundle) -> Plan:
    """Compare two bundles.

    1. Equal digests: nothing.
    2. Files that came, went or are no maps and certificates: a reload, unless haproxy.cfg differs in weights and
       `disabled` alone, or in servers that come and go.
    3. Servers that come or go are told to the worker where it can take that (servers/changes.py).
    4. What is left are certificates, map entries and servers. Additions run from what a route does to how it is found,
       deletions the other way round, so that no request ever finds a route that does nothing.
    """
    if running.digest == wanted.digest:
        return Nothing()
    servers, reasons = _compare_configs(running, wanted)
    reasons += _compare_file_sets(running, wanted)
    if reasons:
        return Reload(tuple(reasons))
    additions, deletions = _compare_maps(running, wanted)
    return Runtime((*certificates.operations(running, wanted), *additions, *servers, *deletions))


def _compare_file_sets(running: Bundle, wanted: Bundle) -> list[str]:
    """Files that only one side has, and changed files that no runtime operation reaches."""
    told = {each.path for each in certificates.operations(running, wanted)}
    told |= certificates.taken_away(running, wanted) if told else set()
    reasons = [f"{path} is new" for path in sorted(wanted.files.keys() - running.files.keys() - told)]
    reasons += [f"{path} is gone" for path in sorted(running.files.keys() - wanted.files.keys() - told)]
    for path in sorted((running.files.keys() & wanted.files.keys()) - told):
        reachable = path in (CONFIG, MANIFEST) or _is_map(path)
        if not reachable and running.files[path] != wanted.files[path]:
            reasons.append(f"{path} changed")
    return reasons


def _compare_configs(running: Bundle, wanted: Bundle) -> tuple[list[Operation], list[str]]:
    """Operations for servers that came, went, or have another weight or state; or the reasons why that is not all."""
    before, after = running.files.get(CONFIG, b""), wanted.files.get(CONFIG, b"")
    if before == after and (running.binds, running.addresses) == (wanted.binds, wanted.addresses):
        return [], []
    if (running.binds, running.addresses) != (wanted.binds, wanted.addresses):
        return [], ["the addresses of listeners changed"]
    running_statements, wanted_statements = read_config(before), read_config(after)
    found = compare_servers(running_statements, wanted_statements)
    if found is None:
        return [], _reasons(running_statements, wanted_statements)
    added, deleted, stay_before, stay_after = found
    operations: list[Operation] = []
    for old, new in zip_longest(stay_before, stay_after):
        if old == new:
            continue
        if not _differ_in_server_state(old, new):
            return [], _reasons(running_statements, wanted_statements)
        operations += _server_operations(old, new)
    return [*added, *operations, *deleted], []


def _differ_in_server_state(old: Statement | None, new: Statement | None) -> bool:
    if old is None or new is None or not (old.is_server and new.is_server):
        return False
    return old.section == new.section and old.server_identity == new.server_identity


def _server_operations(old: Statement, new: Statement) -> list[Operation]:
    pool_id, server_id = new.section.removeprefix("backend "), new.words[1]
    operations: list[Operation] = []
    if old.server_weight != new.server_weight:
        operations.append(SetServerWeight(pool_id, server_id, new.server_weight))
    if new.server_maxconn is not None and old.server_maxconn != new.server_maxconn:
        operations.append(SetServerMaxconn(pool_id, server_id, new.server_maxconn))
    if ("disabled" in old.words) != ("disabled" in new.words):
        state = SetServerState(pool_id, server_id, "maint" if "disabled" in new.words else "ready")
        operations.append(state)
    return operations


def _reasons(before: Iterable[Statement], after: Iterable[Statement]) -> list[str]:
    """Which sections of haproxy.cfg came, went or changed."""
    old, new = _by_section(before), _by_section(after)
    reasons = [f"{section} is new" for section in new if section not in old]
    reasons += [f"{section} is gone" for section in old if section not in new]
    reasons += [f"{section} changed" for section in new if section in old and old[section] != new[section]]
    return reasons or ["the order of sections changed"]


def _by_section(statements: Iterable[Statement]) -> dict[str, list[tuple[str, ...]]]:
    sections: dict[str, list[tuple[str, ...]]] = {}
    for statement in statements:
        sections.setdefault(statement.section, []).append(statement.words)
    return sections


def _compare_maps(running: Bundle, wanted: Bundle) -> tuple[list[Operation], list[Operation]]:
    """Additions and changes in safe order, deletions in the opposite one."""
    additions: list[Operation] = []
    deletions: list[Operation] = []
    for path in sorted(filter(_is_map, wanted.files), key=_found_after):
        before, after = running.files.get(path, b""), wanted.files[path]
        if before != after:
            added, deleted = _compare_map(path, read_map(before), read_map(after))
            additions += added
            deletions = deleted + deletions
    return additions, deletions


def _is_map(path: str) -> bool:
    """Whether a running worker has loaded it and can be told of entries."""
    return path.startswith("maps/") and path != REFUSED_ADDRESSES


def _found_after(path: str) -> tuple[bool, str]:
    """Maps that say what a route does come before those by which it is found."""
    return (path.endswith(("-exact.map", "-prefix.map")), path)


def _compare_map(path: str, old: dict[str, str], new: dict[str, str]) -> tuple[list[Operation], list[Operation]]:
    changed = sorted(key for key, value in new.items() if old.get(key) != value)
    gone = sorted(key for key in old if key not in new)
    if len(changed) + len(gone) > REPLACE_ABOVE:
        return [ReplaceMap(path)], []
    return [SetMapEntry(path, key, new[key]) for key in changed], [DeleteMapEntry(path, key) for key in gone]
