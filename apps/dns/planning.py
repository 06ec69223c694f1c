"""The decision: what to write so that a server serves what is wanted; pure.

Three sides are compared for each name and type: what is wanted now, what the server last took from us, what it serves.

| wanted | pushed before | served | what happens |
|---|---|---|---|
| x | any | x | nothing; it counts as pushed |
| x | any or none | nothing | added |
| x | y | y | changed |
| x | x | z | drift: shown, written again by a repair |
| x | y | z | changed: what is wanted now goes over what somebody did meanwhile |
| x | none | z | in the way: somebody else's record; written only by a repair that takes it over |
| none | y | y | removed |
| none | y | z, nothing | forgotten; z is somebody else's now |
| none | none | z | not ours, never touched |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from apps.drivers.dns.contract import Edit, RecordSet

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """One record set that is served otherwise than it is wanted; `served` None: it is gone."""

    wanted: RecordSet
    served: RecordSet | None


@dataclass(frozen=True, slots=True)
class ZonePlan:
    """What a push would write, and what it leaves alone.

    `drift` was changed on the server behind our back, `in_the_way` stands where ours should be, `unmanaged` is nobody's
    here. `forgotten` are names and types that are ours no more without a write.
    """

    edits: tuple[Edit, ...] = ()
    drift: tuple[Difference, ...] = ()
    in_the_way: tuple[Difference, ...] = ()
    unmanaged: tuple[RecordSet, ...] = ()
    forgotten: tuple[Key, ...] = ()
    ours: frozenset[Key] = frozenset()
    """What counted as pushed before."""
    pushed: Mapping[Key, RecordSet] = field(default_factory=dict)
    """What counts as pushed once the edits are written."""


def plan(
    wanted: Iterable[RecordSet],
    pushed: Iterable[RecordSet],
    served: Iterable[RecordSet],
    *,
    keep: frozenset[Key] = frozenset(),
    repair: frozenset[Key] = frozenset(),
    adopt_existing: bool = False,
) -> ZonePlan:
    """Compare the three sides; all must be in the form of `records.record_set`.

    `keep` are names and types that have nothing to say at the moment and stay as they are; drift at those in `repair`
    is written over, and with `adopt_existing` what stands in the way there as well.
    """
    desk = _Desk({_key(each): each for each in served}, {_key(each): each for each in pushed}, repair, adopt_existing)
    wanted_by_key = {_key(each): each for each in wanted}
    for key in sorted(wanted_by_key):
        desk.settle(key, wanted_by_key[key])
    for key in sorted(desk.ours.keys() - wanted_by_key.keys() - keep):
        desk.remove(key)
    unmanaged = [each for key, each in sorted(desk.served.items()) if key not in wanted_by_key and key not in desk.ours]
    return ZonePlan(
        edits=tuple(desk.edits),
        drift=tuple(desk.drift),
        in_the_way=tuple(desk.in_the_way),
        unmanaged=tuple(unmanaged),
        forgotten=tuple(desk.forgotten),
        ours=frozenset(desk.ours),
        pushed=desk.after,
    )


def _key(each: RecordSet) -> Key:
    return each.name, each.type


class _Desk:
    """One comparison while it is made."""

    def __init__(
        self, served: dict[Key, RecordSet], ours: dict[Key, RecordSet], repair: frozenset[Key], adopt_existing: bool
    ) -> None:
        self.served, self.ours = served, ours
        self.after = dict(ours)
        self.edits: list[Edit] = []
        self.drift: list[Difference] = []
        self.in_the_way: list[Difference] = []
        self.forgotten: list[Key] = []
        self._repair, self._adopt_existing = repair, adopt_existing

    def settle(self, key: Key, wanted: RecordSet) -> None:
        """Bring one wanted record set about, or say why not."""
        there, ours = self.served.get(key), self.ours.get(key)
        others = self._beside(key)
        if there == wanted:
            self.after[key] = wanted
        elif ours == wanted and key not in self._repair:
            self.drift.append(Difference(wanted, there))
        elif others or (ours is None and there is not None):
            self._pass(key, wanted, others)
        else:
            self._write(key, there, wanted)

    def _pass(self, key: Key, wanted: RecordSet, others: list[RecordSet]) -> None:
        """Somebody else's record stands there: taken over by a repair that says so, else left."""
        there = self.served.get(key)
        if not (self._adopt_existing and key in self._repair):
            self.in_the_way.append(Difference(wanted, there or others[0]))
            return
        gone = [Edit(other.name, other.type, other, None) for other in others]
        self.edits += [edit for edit in gone if edit not in self.edits]
        self._write(key, there, wanted)

    def _beside(self, key: Key) -> list[RecordSet]:
        """What of others keeps the record away: beside a CNAME nothing may stand (RFC 1034, 3.6.2)."""
        name, rdtype = key
        return [
            there
            for (at, kind), there in sorted(self.served.items())
            if at == name and kind != rdtype and "CNAME" in (kind, rdtype) and self.ours.get((at, kind)) != there
        ]

    def _write(self, key: Key, there: RecordSet | None, wanted: RecordSet) -> None:
        self.edits.append(Edit(*key, there, wanted))
        self.after[key] = wanted

    def remove(self, key: Key) -> None:
        """Take away what is ours and wanted no more; what somebody made of it meanwhile is theirs."""
        there = self.served.get(key)
        if there is not None and there == self.ours[key]:
            self.edits.append(Edit(*key, there, None))
        else:
            self.forgotten.append(key)
        del self.after[key]
        if there is not None and there != self.ours[key]:
            del self.ours[key]
