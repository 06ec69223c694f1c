"""What has to be written to an etcd so that it says what is wanted, key by key; pure.

Below the prefix of a publication are `objects/KIND/NAME`, a key for each object; `revision`, which is written last; and
`publishing` as long as a set that needs several transactions is on its way. Every transaction compares `revision` and
`publishing` as well as the keys that it writes, so of two that began at once only one comes to its end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apps.definitions.server_sources.etcd.client import Kept, Transaction

OBJECTS, REVISION, FENCE = "objects/", "revision", "publishing"
# etcd takes 128 operations and 1.5 MiB in a transaction, unless told otherwise; two are of REVISION and FENCE.
MOST_WRITES = 126
MOST_BYTES = 1_000_000
# The digest of a key that is not there.
GONE = ""
Known = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A key that is not as we left it, and the revision at which that was seen (0: it is not there)."""

    key: str
    revision: int
    what: str


@dataclass(slots=True)
class Comparison:
    """What differs: `puts` and `deletes` may be written, `conflicts` stand in the way of all of it.

    `due` is whether anything has to be written, be it only `revision`.
    """

    puts: dict[str, str] = field(default_factory=dict)
    deletes: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    due: bool = False


def digest(value: str | None) -> str:
    """What stands for a value in what is known of a key."""
    return GONE if value is None else hashlib.sha256(value.encode()).hexdigest()[:32]


def compare(
    wanted: Mapping[str, str], found: Mapping[str, Kept], known: Known, overwrite: Mapping[str, int]
) -> Comparison:
    """What to write; a key that somebody else changed is in the way unless `overwrite` names it as it is now.

    A key that is already as it is wanted is in nobody's way, whoever wrote it.
    """
    differs = Comparison()
    objects = [key for key in (*wanted, *sorted(found), *sorted(known)) if key.startswith(OBJECTS)]
    for key in dict.fromkeys(objects):
        there = found.get(key)
        if digest(there.value if there else None) == digest(wanted.get(key)):
            continue
        if not _ours(key, there, known, overwrite):
            differs.conflicts.append(_conflict(key, there, known))
        elif key in wanted:
            differs.puts[key] = wanted[key]
        else:
            differs.deletes.append(key)
    for key in (REVISION, FENCE):
        if not _ours(key, found.get(key), known, overwrite):
            differs.conflicts.append(_conflict(key, found.get(key), known))
    # What may still be on its way to etcd compares `revision`: once that was written again, it comes to nothing.
    unsettled = any(len(digests) > 1 for digests in known.values())
    said = found.get(REVISION)
    kept = said is not None and digest(said.value) in known.get(REVISION, ())
    differs.due = bool(differs.puts or differs.deletes or unsettled or not kept or FENCE in found)
    return differs


def _ours(key: str, there: Kept | None, known: Known, overwrite: Mapping[str, int]) -> bool:
    """Whether it is as we left it, or an operator gave up what is there."""
    as_left = digest(there.value if there else None) in known.get(key, (GONE,))
    return as_left or overwrite.get(key) == (there.revision if there else 0)


def _conflict(key: str, there: Kept | None, known: Known) -> Conflict:
    if there is None:
        return Conflict(key, 0, "deleted")
    return Conflict(key, there.revision, "changed" if key in known else "foreign")


def transactions(differs: Comparison, found: Mapping[str, Kept], revision: str, fence: str) -> list[Transaction]:
    """Objects first, `revision` in the last; what is deleted goes after what is put.

    Where there are several, the first writes `publishing`: whoever commits them compares it in the others with the
    revision that the first one answers.
    """
    parts = list(_parts(differs))
    steps = []
    for number, (objects, deletes) in enumerate(parts, 1):
        last = number == len(parts)
        marks = {REVISION: revision} if last else {FENCE: fence} if number == 1 else {}
        gone = [*deletes, FENCE] if last and (number > 1 or FENCE in found) else deletes
        written = (*objects, *gone, REVISION, FENCE)
        as_read = {key: found[key].revision if key in found else 0 for key in written}
        steps.append(Transaction(as_read, objects | marks, gone))
    return steps


def _parts(differs: Comparison) -> Iterator[tuple[dict[str, str], list[str]]]:
    """At least one, if only for `revision`; each of them is as much as etcd takes at once."""
    puts: dict[str, str] = {}
    deletes: list[str] = []
    size = 0
    for key, value in (*differs.puts.items(), *((key, None) for key in differs.deletes)):
        more = len(key.encode()) + len((value or "").encode())
        if len(puts) + len(deletes) == MOST_WRITES or (size + more > MOST_BYTES and size):
            yield puts, deletes
            puts, deletes, size = {}, [], 0
        if value is None:
            deletes.append(key)
        else:
            puts[key] = value
        size += more
    yield puts, deletes
