"""What the nodes of a fleet run because of one object: its own lines of haproxy.cfg and of the maps."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from apps.compiler.bundle import Bundle, for_people
from apps.rollouts.models import FleetSync
from apps.rollouts.push import revision_store

CONFIGURATION, MAPS = "haproxy.cfg", "maps/"
MOST_LINES = 400


@dataclass(frozen=True, slots=True)
class OwnLines:
    """Lines by the file that they stand in, of the revision that the fleet is to run; `more` lines are not shown."""

    revision: int
    files: tuple[tuple[str, str], ...]
    more: int


def own_lines(fleet_id: int, ids: Collection[str], *, values: bool = False) -> OwnLines | None:
    """The lines of objects (`pool-17`, its `srv-4`) in a fleet; None where it has no revision. Raises Unsealable.

    Map lines count whose key is one of these objects; with `values` those as well that lead to one. The caller asks
    whether the viewer owns the objects: a line that leads to a pool belongs to whoever made the route.
    """
    sync = FleetSync.objects.filter(fleet=fleet_id).select_related("wanted")
    sync = sync.defer("wanted__bundle", "wanted__snapshot")
    wanted = next((row.wanted for row in sync), None)
    if wanted is None:
        return None
    bundle = revision_store.bundle_of(wanted.pk, wanted.digest)
    files, left, more = [], MOST_LINES, 0
    for path, lines in _files(bundle, frozenset(ids), values=values):
        files.append((path, "\n".join(lines[:left])))
        more += max(0, len(lines) - left)
        left = max(0, left - len(lines))
    return OwnLines(wanted.number, tuple(each for each in files if each[1]), more)


def _files(bundle: Bundle, ids: frozenset[str], *, values: bool) -> Iterator[tuple[str, list[str]]]:
    lines = for_people(bundle.files[CONFIGURATION]).splitlines()
    yield CONFIGURATION, [lines[at - 1] for at in sorted(bundle.line_owners) if bundle.line_owners[at] in ids]
    for path, content in sorted(bundle.files.items()):
        # Most maps name none of them: text is only split where it does.
        if path.startswith(MAPS) and any(each.encode() in content for each in ids):
            yield path, [line for line in content.decode().splitlines() if _is_own(line, ids, values=values)]


def _is_own(line: str, ids: frozenset[str], *, values: bool) -> bool:
    key, _, value = line.partition(" ")
    return key.partition("/")[0] in ids or (values and value in ids)
