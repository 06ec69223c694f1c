"""The honest fake: name servers that live in this process and refuse what a real one refuses.

`memory://<name>` names a server; `memory_server(name)` opens its world to a test.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from apps.drivers.dns.contract import Contents, Edit, RecordSet, Refused, ServerTarget, Unreachable
from apps.drivers.dns.records import manageable


@dataclass
class MemoryServer:
    """A server's zones and the controls of its world.

    Writing to `records` (by name and type) is what a stranger does; `secret` is what callers must know; `whole` tells
    whether it gives whole zones away, `at_once` how many edits one write should have.
    """

    name: str
    records: dict[tuple[str, str], RecordSet] = field(default_factory=dict)
    secret: str = ""
    unreachable: bool = False
    refusal: str = ""
    whole: bool = True
    at_once: int = 10_000
    writes: int = 0
    reads: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)


_servers: dict[str, MemoryServer] = {}
_lock = threading.Lock()


def memory_server(name: str) -> MemoryServer:
    """The server of that name, made at the first call."""
    with _lock:
        return _servers.setdefault(name, MemoryServer(name))


class MemoryDriver:
    """One zone on a server in memory."""

    def __init__(self, target: ServerTarget) -> None:
        self._target = target
        self._server = memory_server(target.server.removeprefix("memory://"))

    @property
    def at_once(self) -> int:
        """As its server says."""
        return self._server.at_once

    def read(self, known: Sequence[tuple[str, str]]) -> Contents:
        """The records below the zone's domain."""
        with self._server.lock:
            self._admit()
            self._server.reads += 1
            here = [
                each for each in self._server.records.values() if manageable(each.name, each.type, self._target.domain)
            ]
            if not self._server.whole:
                here = [each for each in here if (each.name, each.type) in set(known)]
            return Contents(tuple(sorted(here)), self._server.whole)

    def check(self) -> Contents:
        """As it is read."""
        return self.read(())

    def write(self, edits: Sequence[Edit]) -> None:
        """All or nothing, in one step that nobody sees half of."""
        with self._server.lock:
            self._admit()
            after = dict(self._server.records)
            for edit in edits:
                if self._server.records.get((edit.name, edit.type)) != edit.before:
                    raise Refused(f"{edit.name} {edit.type} has changed since it was read.")
                after.pop((edit.name, edit.type), None)
            for edit in edits:
                if edit.after is not None:
                    after[edit.name, edit.type] = edit.after
            _refuse_cname_with_others(after)
            self._server.records = after
            self._server.writes += 1

    def _admit(self) -> None:
        if self._server.unreachable:
            raise Unreachable(f"The name server {self._server.name} does not answer.")
        if self._server.secret != self._target.secret:
            raise Refused(f"The name server {self._server.name} does not know the key.")
        if self._server.refusal:
            raise Refused(self._server.refusal)


def _refuse_cname_with_others(records: dict[tuple[str, str], RecordSet]) -> None:
    for name, rdtype in records:
        if rdtype == "CNAME" and any(other != "CNAME" and at == name for at, other in records):
            raise Refused(f"{name} has a CNAME record, beside which nothing else may stand.")
