"""Prepared searches that count and assess: what in the lines of a window stands out, and what to do about it; pure.

Each puts lines together by some fields and says in sentences what it finds. Counts are of stored lines: a route that
logs a sample, or errors only, has fewer lines than requests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apps.drivers.logs.contract import Group
from apps.logs.filters import word_of

MOST_GROUPS = 500
SHOWN = 10
# Fewer lines than this say nothing about how they are spread.
ENOUGH = 200
# One server has this many times the share of another, and more than chance explains (in standard deviations).
UNEVEN, BEYOND_CHANCE = 1.25, 5.0
SLOW_MS, SLOW_LINES = 1000.0, 20
# A part of all lines that one client alone should not have.
TOP_SHARE = 0.25
SCANNED_PATHS = 20
USUAL_LINK_MBPS = 1000
PoolRegion = tuple[str, str]
"""A pool and a region."""
Weights = Mapping[PoolRegion, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Around:
    """What else a judgement needs: the window in seconds, weights of servers as they are now, the network's Mb/s."""

    seconds: float
    weights: Weights = field(default_factory=dict)
    link_mbps: int = USUAL_LINK_MBPS


@dataclass(frozen=True, slots=True)
class Row:
    """One group: its cells, and the words that find its lines."""

    cells: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Found:
    """What one prepared search found: sentences name what stands out, rows are the largest groups."""

    sentences: tuple[str, ...]
    rows: tuple[Row, ...]


Verdict = Callable[[Sequence[Group], Around], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A prepared search: the lines it looks at, how they are put together, and who judges."""

    title: str
    about: str
    words: str
    fields: tuple[str, ...]
    columns: tuple[str, ...]
    verdict: Verdict
    rank: Callable[[Group], float]
    cells: Callable[[Group, Around], tuple[str, ...]]


def found(pattern: Pattern, groups: Sequence[Group], around: Around) -> Found:
    """The judgement about these groups, and the first of them."""
    ranked = sorted(groups, key=pattern.rank, reverse=True)[:SHOWN]
    rows = (
        Row(
            (*(value or "none" for value in each.values), *pattern.cells(each, around)),
            " ".join([pattern.words, *map(word_of, pattern.fields, each.values)]).strip(),
        )
        for each in ranked
    )
    return Found(tuple(pattern.verdict(groups, around)), tuple(rows))


def _races(groups: Sequence[Group], _around: Around) -> Iterator[str]:
    for each in groups:
        pool, server = each.values
        times = "once" if each.lines == 1 else f"{each.lines:,} times"
        yield (
            f"{server} of pool {pool} closed a kept connection {times} while a request was on its way, which was "
            "answered with 502. Set the pool's server_keepalive_ms below the time for which the server keeps idle "
            "connections, or lengthen that."
        )


def _uneven(groups: Sequence[Group], around: Around) -> Iterator[str]:
    together: dict[PoolRegion, list[Group]] = defaultdict(list)
    for each in groups:
        pool, region, _ = each.values
        together[pool, region].append(each)
    for (pool, region), servers in together.items():
        total = sum(each.lines for each in servers)
        expected = _expected(servers, around.weights.get((pool, region), {}))
        shares = {each.lines / wanted: each for each, wanted in zip(servers, expected, strict=True)}
        most, least = max(shares), min(shares)
        beyond = max(abs(each.lines - wanted) / wanted**0.5 for each, wanted in zip(servers, expected, strict=True))
        if total < ENOUGH or most < UNEVEN * least or beyond < BEYOND_CHANCE:
            continue
        listed = ", ".join(f"{each.values[2]} {each.lines:,}" for each in sorted(servers, key=lambda each: each.lines))
        where = f"{pool} in {region}" if region else pool
        yield (
            f"The servers of pool {where} are uneven: of {total:,} requests {shares[least].values[2]} answered "
            f"{shares[least].lines:,} and {shares[most].values[2]} {shares[most].lines:,}; by their weights "
            f"{shares[most].values[2]} has {most / least:.1f} times the share ({listed})."
        )


def _expected(servers: Sequence[Group], weights: Mapping[str, int]) -> list[float]:
    """How many each would have by weight; equally many where a weight is not known."""
    own = [weights.get(each.values[2], 0) for each in servers]
    if not all(own):
        own = [1] * len(servers)
    total = sum(each.lines for each in servers)
    return [total * weight / sum(own) for weight in own]


def _slow(groups: Sequence[Group], _around: Around) -> Iterator[str]:
    for each in sorted(groups, key=_slowness, reverse=True):
        if each.lines >= SLOW_LINES and _slowness(each) >= SLOW_MS:
            half = "unknown" if each.response_p50_ms is None else f"{each.response_p50_ms:,.0f} ms"
            yield (
                f"Route {each.values[0]} is slow: one request in twenty takes {_slowness(each):,.0f} ms or longer. "
                f"Half of the responses begin within {half}."
            )


def _top(groups: Sequence[Group], _around: Around) -> Iterator[str]:
    total = sum(each.lines for each in groups)
    for each in groups:
        if total >= ENOUGH and each.lines >= TOP_SHARE * total:
            percent = 1000 * each.lines // total / 10  # only all of them are 100 %
            yield f"Client {each.values[0]} made {each.lines:,} of {total:,} requests, {percent:g} %."


def _scanners(groups: Sequence[Group], _around: Around) -> Iterator[str]:
    for each in sorted(groups, key=lambda each: each.paths, reverse=True):
        if each.paths >= SCANNED_PATHS:
            yield (
                f"Client {each.values[0]} looks for what is not there: {each.paths:,} different paths were answered "
                "with 4xx. Put it on a network list that a policy denies, or limit clients."
            )


def _bytes(groups: Sequence[Group], around: Around) -> Iterator[str]:
    lines, size = sum(each.lines for each in groups), sum(each.bytes_out for each in groups)
    if not lines or not size:
        return
    each_kb, mbps = size / lines / 1000, size * 8 / around.seconds / 1e6
    most = around.link_mbps * 1e6 / 8 / (size / lines)
    yield (
        f"A response has {each_kb:,.1f} kB on average, together {mbps:,.1f} Mb/s. A network of {around.link_mbps:,} "
        f"Mb/s carries {most:,.0f} such responses per second."
    )
    if mbps >= 0.7 * around.link_mbps:
        yield "The network is near its limit: more servers will not help, smaller responses or compression will."


def _slowness(group: Group) -> float:
    return group.total_p95_ms or 0.0


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f} ms"


def _lines(group: Group) -> float:
    return group.lines


def _usual_cells(group: Group, _around: Around) -> tuple[str, ...]:
    return f"{group.lines:,}", f"{group.failed:,}", _ms(group.response_p50_ms), _ms(group.total_p95_ms)


def _path_cells(group: Group, _around: Around) -> tuple[str, ...]:
    return f"{group.lines:,}", f"{group.paths:,}"


def _byte_cells(group: Group, around: Around) -> tuple[str, ...]:
    each_kb = group.bytes_out / group.lines / 1000
    return f"{group.lines:,}", f"{each_kb:,.1f} kB", f"{group.bytes_out * 8 / around.seconds / 1e6:,.2f} Mb/s"


_USUAL = ("Requests", "5xx", "Response, median", "Total, 95th percentile")
PATTERNS: Mapping[str, Pattern] = {
    "keep-alive-races": Pattern(
        "Keep-alive races",
        "502 because a server closed a kept connection just as a request was sent on it.",
        'status:502 termination:SH connect:0 -server:""',
        *(("pool", "server"), ("Pool", "Server", *_USUAL), _races, _lines, _usual_cells),
    ),
    "uneven-servers": Pattern(
        "Uneven servers",
        "Servers of one pool and region that do not answer as many requests as their weights say.",
        '-server:""',
        *(("pool", "region", "server"), ("Pool", "Region", "Server", *_USUAL), _uneven, _lines, _usual_cells),
    ),
    "slow-routes": Pattern(
        "Slow routes",
        f"Routes of which one request in twenty takes {SLOW_MS / 1000:g} s or longer.",
        '-route:""',
        *(("route",), ("Route", *_USUAL), _slow, _slowness, _usual_cells),
    ),
    "top-clients": Pattern(
        "Top clients",
        "Clients that make a quarter of all requests or more.",
        "",
        *(("client",), ("Client", *_USUAL), _top, _lines, _usual_cells),
    ),
    "scanners": Pattern(
        "Scanners",
        f"Clients that asked for {SCANNED_PATHS} different paths or more and got 4xx.",
        "status>=400 status<500",
        *(("client",), ("Client", "Requests", "Paths"), _scanners, lambda each: each.paths, _path_cells),
    ),
    "bytes-per-response": Pattern(
        "Bytes per response",
        "Whether the network is the limit: how large responses are, and how many of them it carries.",
        "kind:request",
        *(("route",), ("Route", "Requests", "Per response", "Rate"), _bytes, lambda each: each.bytes_out, _byte_cells),
    ),
}
