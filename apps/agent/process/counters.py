"""HAProxy's counters as rows of our own objects."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

OURS = re.compile(r"(?:lst|pool|srv|lb)-[0-9]+")
TABLE_ROW = re.compile(r"key=(\S+) .*?(?:gpc0|http_req_cnt)=(\d+)")
ROUTE_ERRORS = re.compile(r"http_fail_cnt=(\d+)")
ADMITTED = re.compile(r"key=(\S+) .*?gpc0_rate\(\d+\)=(\d+)")
PEER = re.compile(r"id=(node-[0-9]+)\((remote|local)")
GATE = re.compile(r"to-(rgn-[0-9]+)")
QUEUE = re.compile(r"queue-[0-9]+")
UNRESOLVED = "MAINT (resolution)"
COUNTED = (
    "requests", "status_2xx", "status_3xx", "status_4xx", "status_5xx", "connections", "bytes_in", "bytes_out",
    "errors",
)  # fmt: skip
SUMMED = (*COUNTED, "connections_now", "queue_now")
TABLES = ("st_latency", "st_routes", "st_flow", "st_limits")
COMMAND = ";".join(("show info", "show stat", *(f"show table {table}" for table in TABLES), "show peers"))


def read(text: str, why_unresolved: Callable[[str, str], str] = lambda _pool, _server: "") -> dict[str, Any]:
    """What one worker counted since it began, by its answer to COMMAND; its `epoch` is the worker.

    `why_unresolved` is asked about servers without an address: pool, server → why in words. Rows of listeners have the
    agent's own `probes` in them.
    """
    read_at = time.time()
    info, stat, tables = _split(text.splitlines())
    counted = [(line, found) for line in tables.get("st_routes", []) if (found := TABLE_ROW.search(line))]
    probes = {found.group(1): int(found.group(2)) for _, found in counted if not found.group(1).startswith("route-")}
    shown = list(csv.DictReader(stat))
    rows = [row for row in map(_row, shown) if row]
    _explain(rows, why_unresolved)
    _add_queues(rows, shown)
    rows += _rejected(shown)
    rows += [_route_row(line, found) for line, found in counted if found.group(1) not in probes]
    rows += [_flow_row(found) for line in tables.get("st_flow", []) if (found := TABLE_ROW.search(line))]
    return {
        "epoch": f"{info.get('Pid', '0')}-{info.get('Start_time_sec', '0')}",
        "read_at": read_at,
        "probes": probes,
        "rows": rows,
        "latency_buckets": _buckets(tables.get("st_latency", [])),
        "admitted": _admitted(tables.get("st_limits", [])),
        "peers": _peers(tables.get("peers", [])),
        "distances_ms": _distances(shown),
        "in_use": in_use(info),
    }


def _split(lines: Iterable[str]) -> tuple[dict[str, str], list[str], dict[str, list[str]]]:
    """Tell the answers apart by their first lines."""
    info: dict[str, str] = {}
    stat: list[str] = []
    tables: dict[str, list[str]] = {}
    table: list[str] | None = None
    for line in lines:
        if line.startswith("# pxname"):
            stat.append(line[2:])
        elif line.startswith("# table: "):
            table = tables.setdefault(line[9:].partition(",")[0], [])
        elif table is not None and "key=" in line:
            table.append(line)
        # Peers come after the tables. Before them such words may be a server's own, in the text of its check.
        elif table is not None and (" id=node-" in line or " state=" in line):
            tables.setdefault("peers", []).append(line)
        elif stat and table is None and "," in line:
            stat.append(line)
        elif not stat and ": " in line:
            name, _, value = line.partition(": ")
            info[name] = value
    return info, stat, tables


def _number(row: dict[str, str], *names: str) -> int:
    for name in names:
        if row.get(name):
            return int(row[name])
    return 0


def _row(row: dict[str, str]) -> dict[str, Any] | None:
    name, part = row["pxname"], row["svname"]
    if not OURS.fullmatch(name) or (part not in ("FRONTEND", "BACKEND") and not OURS.fullmatch(part)):
        return None
    kind = {"FRONTEND": "frontend", "BACKEND": "backend"}.get(part, "server")
    latency = _number(row, "qtime") + _number(row, "ctime") + _number(row, "rtime")
    took = row.get("check_duration")
    check = " ".join(filter(None, [row.get("check_status"), row.get("last_chk")]))
    return {
        "kind": kind,
        "object_id": part if kind == "server" else name,
        "parent_id": name if kind == "server" else "",
        "requests": _number(row, "req_tot", "stot"),
        **{f"status_{each}xx": _number(row, f"hrsp_{each}xx") for each in "2345"},
        "connections": _number(row, "conn_tot", "stot"),
        "connections_now": _number(row, "scur"),
        "queue_now": _number(row, "qcur"),
        "bytes_in": _number(row, "bin"),
        "bytes_out": _number(row, "bout"),
        "errors": _number(row, "ereq") + _number(row, "econ") + _number(row, "eresp"),
        "latency_ms": latency,
        "status": _status(row),
        "check": f"{check} in {took} ms" if check and took else check,
    }


def _status(row: dict[str, str]) -> str:
    """HAProxy calls a backend UP that has no server at all."""
    empty = row["svname"] == "BACKEND" and row.get("act") == row.get("bck") == "0"
    return "DOWN" if empty else row.get("status", "")


def take_off_probes(rows: Iterable[dict[str, Any]], probes: Mapping[str, int]) -> None:
    """Our own questions to a listener are no traffic: each is a connection, a request and an answer less."""
    for row in rows:
        if row["kind"] == "frontend":
            for name in ("connections", "requests", "status_2xx"):
                row[name] = max(0, row[name] - probes.get(row["object_id"], 0))


def _explain(rows: list[dict[str, Any]], why_unresolved: Callable[[str, str], str]) -> None:
    """A server without an address has no check that could say what is wrong."""
    for row in rows:
        if row["status"] == UNRESOLVED:
            row["check"] = why_unresolved(row["parent_id"], row["object_id"])


def _add_queues(rows: list[dict[str, Any]], shown: list[dict[str, str]]) -> None:
    """What waited in a pool's twin and was then served is the pool's traffic."""
    by_key = {(row["kind"], row["parent_id"], row["object_id"]): row for row in rows}
    for each in shown:
        if not QUEUE.fullmatch(each["pxname"]):
            continue
        twin = _row({**each, "pxname": each["pxname"].replace("queue-", "pool-")})
        row = by_key.get((twin["kind"], twin["parent_id"], twin["object_id"])) if twin else None
        if twin and row:
            row.update({name: row[name] + twin[name] for name in SUMMED})


def _rejected(shown: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Connections that a listener closed at once: no request, no line in any log, and no connection that it counts."""
    fronts = [each for each in shown if each["svname"] == "FRONTEND" and OURS.fullmatch(each["pxname"])]
    counted = [(each["pxname"], _number(each, "dcon") + _number(each, "dses")) for each in fronts]
    return [{**nothing("rejected", name), "connections": count} for name, count in counted if count]


def _flow_row(found: re.Match[str]) -> dict[str, Any]:
    """`key=pool-17/to/rgn-2/rate … gpc0=5`: requests that did not simply stay at home."""
    zero = nothing("flow", found.group(1), found.group(1).partition("/")[0])
    return {**zero, "requests": int(found.group(2))}


def _admitted(lines: list[str]) -> dict[str, int]:
    """`pool-17/node-5` → what that node admitted in the last ten seconds, as far as this one was told; no zeros."""
    found = (ADMITTED.search(line) for line in lines)
    return {each.group(1): int(each.group(2)) for each in found if each and each.group(2) != "0"}


def _peers(lines: list[str]) -> dict[str, bool]:
    """Every other node → whether the two exchange counters now."""
    peers: dict[str, bool] = {}
    current = ""
    for line in lines:
        found = PEER.search(line)
        if found:
            current = found.group(1) if found.group(2) == "remote" else ""
            if current:
                peers[current] = False
        elif current and " state=EST" in line:
            peers[current] = True
    return peers


def in_use(info: dict[str, str]) -> dict[str, float]:
    """The shares (0–1) of its processor time and of its connections that this worker uses."""
    found = {}
    if info.get("Idle_pct", "").isdigit():
        found["cpu"] = 1 - min(100, int(info["Idle_pct"])) / 100
    most = info.get("Maxconn", "")
    if most.isdigit() and int(most):
        found["connections"] = min(1.0, int(info.get("CurrConns", "0")) / int(most))
    return found


def _distances(shown: list[dict[str, str]]) -> dict[str, int]:
    """Region → milliseconds to its nearest node and back: a check asks over a new connection, so it takes two trips."""
    found: dict[str, int] = {}
    for row in shown:
        gate = GATE.fullmatch(row["pxname"])
        took = row.get("check_duration") or ""
        if gate and row["svname"].startswith("node-") and row.get("status") == "UP" and took.isdigit():
            trip = (int(took) + 1) // 2 if row.get("check_status", "").startswith("L7") else int(took)
            found[gate.group(1)] = min(trip, found.get(gate.group(1), trip))
    return found


def nothing(kind: str, object_id: str, parent_id: str = "") -> dict[str, Any]:
    """A row in which nothing happened."""
    zero: dict[str, Any] = dict.fromkeys((*SUMMED, "latency_ms"), 0)
    return {"kind": kind, "object_id": object_id, "parent_id": parent_id, **zero, "status": "", "check": ""}


def _route_row(line: str, found: re.Match[str]) -> dict[str, Any]:
    failed = ROUTE_ERRORS.search(line)
    errors = int(failed.group(1)) if failed else 0
    return {**nothing("route", found.group(1)), "requests": int(found.group(2)), "errors": errors}


def _buckets(lines: list[str]) -> dict[str, dict[str, int]]:
    """`key=pool-17/100 … gpc0=5` → {"pool-17": {"100": 5}}."""
    buckets: dict[str, dict[str, int]] = {}
    for line in lines:
        found = TABLE_ROW.search(line)
        if found:
            pool, _, bound = found.group(1).rpartition("/")
            buckets.setdefault(pool, {})[bound] = int(found.group(2))
    return buckets
