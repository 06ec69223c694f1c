"""Sets of addresses as ranges of numbers, IPv4 before IPv6, so that any rule about networks becomes one list."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, reduce
from ipaddress import IPv4Address, IPv6Address, ip_network, summarize_address_range
from itertools import chain

from apps.importing.logic.formulas import And, Atom, Formula, Not, Or

Ranges = tuple[tuple[int, int], ...]
"""First and last number of each range, ascending and apart from each other."""
_V6 = 2**32
_LAST = _V6 + 2**128 - 1
NOBODY: Ranges = ()
EVERYBODY: Ranges = ((0, _LAST),)


@lru_cache(maxsize=256)
def addresses(networks: tuple[str, ...]) -> Ranges:
    """The addresses in any of the networks. Raises ValueError for what is no network."""
    read = (ip_network(each, strict=False) for each in networks)
    return union(
        (base + int(each.network_address), base + int(each.broadcast_address))
        for each in read
        for base in [_V6 if each.version == 6 else 0]
    )


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """What is in any of them."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


def outside(ranges: Ranges) -> Ranges:
    """All other addresses."""
    firsts = [0, *(last + 1 for _, last in ranges)]
    lasts = [*(first - 1 for first, _ in ranges), _LAST]
    return tuple(each for each in zip(firsts, lasts, strict=True) if each[0] <= each[1])


def common(one: Ranges, other: Ranges) -> Ranges:
    """What is in both."""
    return outside(union((*outside(one), *outside(other))))


def where(formula: Formula) -> Ranges:
    """The addresses of clients for whom a formula holds that asks for nothing else."""
    match formula:
        case Atom():
            return addresses(formula.values)
        case Not():
            return outside(where(formula.part))
        case And():
            return reduce(common, map(where, formula.parts))
        case Or():
            return union(chain.from_iterable(map(where, formula.parts)))
    return EVERYBODY if formula else NOBODY


def written(ranges: Ranges) -> tuple[str, ...]:
    """The fewest networks that are these addresses."""
    old = ((first, min(last, _V6 - 1)) for first, last in ranges if first < _V6)
    new = ((max(first, _V6) - _V6, last - _V6) for first, last in ranges if last >= _V6)
    parts = [summarize_address_range(IPv4Address(first), IPv4Address(last)) for first, last in old]
    later = [summarize_address_range(IPv6Address(first), IPv6Address(last)) for first, last in new]
    return tuple(map(str, chain(*parts, *later)))


class FirstMatch:
    """Rules of networks in their order, of which the first that holds counts: those of a kind in a row are one."""

    def __init__(self) -> None:
        self._denied, self._decided = NOBODY, NOBODY
        self._row: list[tuple[int, int]] = []
        self._denies = False

    def add(self, ranges: Ranges, *, denies: bool) -> None:
        """The next rule."""
        if denies is not self._denies:
            self._close_row()
        self._denies = denies
        self._row += ranges

    @property
    def denied(self) -> Ranges:
        """Whom the rules so far keep out."""
        self._close_row()
        return self._denied

    @property
    def accepted(self) -> Ranges:
        """Whom they let in, whatever comes after them."""
        self._close_row()
        return common(self._decided, outside(self._denied))

    def _close_row(self) -> None:
        named = union(self._row)
        if self._denies:
            self._denied = union((*self._denied, *common(named, outside(self._decided))))
        self._decided = union((*self._decided, *named))
        self._row = []


def shorter(denied: Ranges) -> tuple[str, tuple[str, ...]]:
    """`allow` or `deny` with the networks to list: the two are all networks, so the shorter list says as much."""
    kept_out, let_in = written(denied), written(outside(denied))
    return ("allow", let_in) if len(let_in) <= len(kept_out) else ("deny", kept_out)
