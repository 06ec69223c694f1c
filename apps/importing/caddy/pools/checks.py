"""Health checks of `reverse_proxy`: those that ask servers, and those that watch requests."""

from __future__ import annotations

from typing import Any

from apps.importing.caddy.context import Caddy
from apps.importing.caddy.durations import time_at
from apps.importing.values.fields import listed, mapping, whole
from apps.importing.values.parsing import Path

CHECKED = "Nodes also connect to the servers every two seconds; that brings a server back."


def checks(caddy: Caddy, at: Path) -> dict[str, Any]:
    """Checks of our own, and what requests show."""
    return _active(caddy, (*at, "active")) | _passive(caddy, (*at, "passive"))


def _active(caddy: Caddy, at: Path) -> dict[str, Any]:
    said = mapping(caddy.fields.at(*at))
    if not said:
        return {}
    path, _, query = str(said.get("uri") or said.get("path") or "/").partition("?")
    found: dict[str, Any] = {
        "path": f"{path}?{query}" if query else path,
        "interval_ms": time_at(caddy, (*at, "interval")) or 30_000,
        "timeout_ms": time_at(caddy, (*at, "timeout")) or 5000,
        "rise": whole(said.get("passes"), 1), "fall": whole(said.get("fails"), 1),
        "expect_statuses": ["200-299"],
    }  # fmt: skip
    for name in ("uri", "path", "passes", "fails", "port", "headers", "expect_status", "expect_body", "max_size"):
        if name in said:
            caddy.fields.mapped((*at, name))
    if "port" in said:
        found["port"] = said["port"]
    status = said.get("expect_status")
    if isinstance(status, int) and status:
        found["expect_statuses"] = [f"{status}00-{status}99" if status < 10 else str(status)]
    for name, values in mapping(said.get("headers")).items():
        if name.lower() == "host":
            found["host"] = str(next(iter(listed(values)), "")).lower()
        else:
            found.setdefault("headers", {})[name] = str(next(iter(listed(values)), ""))
    if text := said.get("expect_body"):
        found["expect_body"] = str(text)
        if any(sign in str(text) for sign in "^$.*+?[](){}|\\"):
            found.pop("expect_body")
            caddy.fields.impossible((*at, "expect_body"), "The body of a check holds a fixed text, no pattern.")
    return {"health_check": found}


def _passive(caddy: Caddy, at: Path) -> dict[str, Any]:
    said = mapping(caddy.fields.at(*at))
    back = time_at(caddy, (*at, "fail_duration"))
    if "max_fails" in said:
        caddy.fields.mapped((*at, "max_fails"))
    if "unhealthy_latency" in said:
        caddy.fields.impossible((*at, "unhealthy_latency"), "Servers are not ejected for slow answers.")
    if back is None:
        return {}
    found: dict[str, Any] = {
        "observe": "connections",
        "errors": whole(said.get("max_fails"), 1),
        "return_after_ms": back,
    }
    if "unhealthy_status" in said:
        caddy.fields.differs((*at, "unhealthy_status"), "Responses with any status from 500 on are errors.")
        found["observe"] = "responses"
    caddy.fields.differs((*at, "fail_duration"), CHECKED)
    return {"outlier_ejection": found}


def limits(caddy: Caddy, path: Path, spec: dict[str, Any]) -> None:
    """The most requests of a server at once; a check where only its failures are watched."""
    found = [(at, each["max_requests"]) for at, each in caddy.fields.each(*path, "upstreams") if "max_requests" in each]
    most = caddy.fields.at(*path, "health_checks", "passive", "unhealthy_request_count")
    if most is not None:
        found.append(((*path, "health_checks", "passive", "unhealthy_request_count"), most))
    for at, _ in found:
        caddy.fields.mapped(at)
    if found:
        spec["connections"] = {"max_per_server": whole(found[0][1], 1)}
    if "outlier_ejection" in spec:
        spec.setdefault("health_check", {})
