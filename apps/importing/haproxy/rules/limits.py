"""Stick-tables and the rules that look at their counters, as limits per client."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil

from apps.importing.haproxy.text.durations import milliseconds
from apps.importing.haproxy.text.sections import Configuration, Section
from apps.importing.logic.formulas import Atom, Formula
from apps.importing.verdicts import Line

_COUNTER = re.compile(r"([a-z0-9_]+)\(([0-9a-z]+)\)")
_FIELDS = {
    **dict.fromkeys(("http_req_rate", "http_req_cnt"), "requests"),
    **dict.fromkeys(("conn_rate", "sess_rate", "conn_cnt", "sess_cnt"), "requests"),
    "conn_cur": "in_flight",
    "bytes_out_rate": "bytes_out",
    "bytes_in_rate": "bytes_in",
    **dict.fromkeys(("http_err_rate", "http_err_cnt"), "errors"),
}
COUNTERS = ("sc-inc-gpc", "sc-set-gpt", "sc-add-gpc")
BANNED = "Clients are banned by a client limit (ban_after), not by counters."
NO_REFUSALS = "Responses of servers are counted, not what is refused here; ban_after keeps such clients out for longer."
_MINUTE, _SECOND = 60_000, 1000


@dataclass(frozen=True, slots=True)
class Tracker:
    """A line that counts something: what identifies a client, and where it is counted."""

    line: Line
    key: str
    table: str
    condition: Formula = True


@dataclass(frozen=True, slots=True)
class Limit:
    """A block of a policy (`client_limit`), and what of it differs."""

    block: tuple[tuple[str, object], ...]
    differs: str = ""


def table_of(configuration: Configuration, section: Section, name: str) -> Line | None:
    """The stick-table of a proxy, or of the section itself; `peers/table` is one of peers."""
    if not name:
        return section.last("stick-table")
    wanted = name.rpartition("/")[2]
    for each in configuration.of_kind("backend", "listen", "frontend"):
        if each.name == name:
            return each.last("stick-table")
    for each in configuration.of_kind("peers"):
        for line in each.each("table"):
            if len(line.words) > 1 and line.words[1] == wanted:
                return line
    return None


def limit_of(atom: Atom, table: Line | None, key: str) -> Limit | None:
    """The limit that a question about a counter stands for; None for a counter that no limit has."""
    field = _FIELDS.get(atom.match)
    numbers = [int(value) for value in atom.values if value.isdecimal()]
    if field is None or not numbers:
        return None
    said: list[str] = []
    most = max(1, numbers[0] - (1 if "ge" in atom.values else 0))
    block: dict[str, object] = _key_of(key, said)
    if field == "in_flight":
        block[field] = min(most, 100_000)
        said.append("Requests in flight are counted, not connections.")
    else:
        block |= _rate(field, most, _period(atom, table), said)
    if field == "requests" and not atom.match.startswith("http"):
        said.append("Requests are counted, not connections.")
    if field == "errors":
        said.append(NO_REFUSALS)
    return Limit(tuple(block.items()), " ".join(said))


def in_period(limit: Limit, per: str) -> Limit:
    """The same limit counted per second or minute, as another field of its policy is; a policy has one period."""
    block = dict(limit.block)
    if block.get("per", per) == per:
        return limit
    field = next(name for name in block if name in _FIELDS.values())
    most = int(str(block[field]))
    said = [limit.differs, f"The rate is counted per {per}, as other limits of these clients are."]
    block |= {field: _within(field, most * 60 if per == "minute" else ceil(most / 60)), "per": per}
    return Limit(tuple(block.items()), " ".join(filter(None, said)))


def period_of(limit: Limit) -> tuple[str, str] | None:
    """What a limit bounds, and the period that it is counted in; None for requests in flight."""
    block = dict(limit.block)
    field = next(name for name in block if name in _FIELDS.values())
    return (field, str(block["per"])) if "per" in block else None


def _rate(field: str, most: int, period: int, said: list[str]) -> dict[str, object]:
    if period in (_SECOND, _MINUTE):
        return {field: _within(field, most), "per": "second" if period == _SECOND else "minute"}
    if period < _SECOND:
        said.append("The rate is counted per second.")
        return {field: _within(field, most * _SECOND // period), "per": "second"}
    said.append(f"The rate is counted per minute ({most} in {period // 1000} s).")
    return {field: _within(field, max(1, round(most * _MINUTE / period))), "per": "minute"}


def _within(field: str, number: int) -> int:
    return min(number, 1_000_000) if field in ("requests", "errors") else min(max(number, 1000), 200_000_000)


def _period(atom: Atom, table: Line | None) -> int:
    """Milliseconds in which a counter of the table counts; of one without a period, how long entries are kept."""
    words = table.words if table else ()
    for word in words:
        for name, period in _COUNTER.findall(word):
            if name == atom.match:
                return milliseconds(period) or 10_000
    if "expire" in words[:-1]:
        return milliseconds(words[words.index("expire") + 1], unit="ms") or _MINUTE
    return 10_000


def _key_of(key: str, said: list[str]) -> dict[str, object]:
    found = re.fullmatch(r"(?:req\.)?(?:f?hdr|cook)\(([A-Za-z0-9_-]+)\)(?:,lower)?", key)
    if found and "cook" in key:
        return {"key": "cookie", "key_name": found[1]}
    if found and found[1].lower() in ("x-forwarded-for", "x-real-ip", "cf-connecting-ip"):
        said.append("Clients are told apart by their address; name the proxies in client_address of the listener.")
        return {}
    if found:
        return {"key": "header", "key_name": found[1]}
    if key not in ("src", "src,ipmask(32,64)", "src,ipmask(32)"):
        said.append(f"Clients are told apart by their address, not by {key}.")
    return {}
