"""How a plan and its records travel between the processes: one JSON object per line."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from apps.drivers.load.contract import Arrivals, Endpoint, Plan, Request, Second, Tls

# A body of 1 MiB is the longest thing that travels.
LONGEST_LINE = 4 * 1024 * 1024


def line_of(word: str, **values: object) -> bytes:
    """A message: what it says, and the values that belong to it."""
    return json.dumps({"say": word, **values}, separators=(",", ":")).encode() + b"\n"


def read_line(line: bytes) -> tuple[str, dict[str, Any]]:
    """The word and the values of a message; raises ValueError when it is none."""
    found = json.loads(line)
    if not isinstance(found, dict) or not isinstance(found.get("say"), str):
        raise ValueError("This is no message.")
    return found.pop("say"), found


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values."""
    found = asdict(plan)
    found["request"]["body"] = base64.b64encode(plan.request.body).decode("ascii")
    found["request"]["headers"] = dict(plan.request.headers)
    return found


def plan_from_json(found: Mapping[str, Any]) -> Plan:
    """What `plan_to_json` wrote; raises KeyError, TypeError or ValueError of anything else."""
    request = dict(found["request"])
    request["body"] = base64.b64decode(request["body"], validate=True)
    values = {
        **found,
        "endpoints": tuple(Endpoint(**each) for each in found["endpoints"]),
        "request": Request(**request),
        "arrivals": Arrivals(found["arrivals"]),
        "tls": Tls(**found["tls"]) if found["tls"] is not None else None,
    }
    return Plan(**values)


def second_to_json(second: Second) -> dict[str, Any]:
    """The record as JSON values; statuses become text, as keys of JSON are."""
    return asdict(second)


def second_from_json(found: Mapping[str, Any]) -> Second:
    """What `second_to_json` wrote, after a journey as JSON."""
    statuses = {int(status): int(count) for status, count in found["statuses"].items()}
    return Second(**{**found, "statuses": statuses})
