"""Commands that look: status, rollout, trace and logs; they change nothing."""

from __future__ import annotations

import argparse
import time
from typing import Any
from urllib.parse import urlsplit

from .. import texts
from ..api import Api, Failure
from ..numbers import number

Done = tuple[Any, str, int]
POLL_S = 30
GOOD_ENDS = frozenset({"done", "superseded"})
LOG_FIELDS = ("at", "actor", "action", "object", "reason")


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The words of status, rollout, trace and logs."""
    status = commands.add_parser("status", parents=[every], help="fleets and their rollouts in progress")
    status.set_defaults(run=show_status)

    rollout = commands.add_parser("rollout", parents=[every], help="one rollout, node by node")
    rollout.add_argument("id", metavar="ID", type=number)
    rollout.add_argument("--wait", action="store_true", help="wait until it has finished")
    rollout.set_defaults(run=show_rollout)

    trace = commands.add_parser("trace", parents=[every], help="show which route a request matches, and why")
    trace.add_argument("method", metavar="METHOD")
    trace.add_argument("target", metavar="URL")
    trace.add_argument("-H", "--header", action="append", default=[], metavar="NAME:VALUE")
    trace.add_argument("--client", metavar="ADDRESS", help="for routes that ask for the client's network")
    trace.add_argument("--load-balancer", metavar="NAME")
    trace.set_defaults(run=trace_request)

    logs = commands.add_parser("logs", parents=[every], help="the audit log of your account, newest first")
    for name in ("actor", "kind", "action", "q", "since", "until"):
        logs.add_argument(f"--{name}")
    logs.add_argument("--limit", type=number, default=50)
    logs.set_defaults(run=show_logs)


def show_status(api: Api, _asked: argparse.Namespace) -> Done:
    """Fleets with the generation that they should have, rollouts that are not over; customers see their routes."""
    fleets = api("GET", "fleets", query={"limit": "500"})["items"]
    rollouts = api("GET", "rollouts", query={"limit": "50"})["items"]
    last = {
        fleet["name"]: next((each for each in rollouts if each["fleet"] == fleet["name"]), None) for fleet in fleets
    }
    running = [each for each in rollouts if not each["terminal"]]
    if not fleets:
        return _status_of_customer(api)
    rows = [(name, *_state(found)) for name, found in last.items()]
    parts = [texts.table(rows, ("FLEET", "LAST ROLLOUT", "STATE", "REVISION", "SAYS"))]
    parts.append(f"{len(running)} in progress." if running else "No rollouts in progress.")
    body = {"fleets": fleets, "in_flight": running, "last": last}
    return body, "\n".join(parts), 0


def _state(rollout: Any) -> tuple[object, ...]:
    if rollout is None:
        return ("", "none yet", "", "")
    return (rollout["id"], rollout["state"], rollout["revision"], rollout["message"])


def _status_of_customer(api: Api) -> Done:
    routes = api("GET", "routes", query={"limit": "500"})["items"]
    waiting = [route for route in routes if route.get("serving") is False]
    rows = [(route["name"], route["spec"]["hostname"], route["spec"]["path"]) for route in waiting]
    text = f"{len(routes)} routes, {len(waiting)} of them waiting for the verification of their hostname."
    if waiting:
        text = f"{texts.table(rows, ('WAITING', 'HOSTNAME', 'PATH'))}\n{text}"
    return {"routes": len(routes), "waiting": waiting}, f"{text}\nFleets and rollouts are the operator's.", 0


def show_rollout(api: Api, asked: argparse.Namespace) -> Done:
    """One rollout; with --wait its end, and exit code 1 where that is not what was wanted."""
    body = api("GET", f"rollouts/{asked.id}")
    while asked.wait and not body["terminal"]:
        began = time.monotonic()
        body = api("GET", f"rollouts/{asked.id}", query={"wait": str(POLL_S)})
        if not body["terminal"] and time.monotonic() - began < 1:
            time.sleep(1)  # too many wait at the server: it answers at once
    rows = [(step["node"], str(step["wave"]), step["state"], step["how"], step["message"]) for step in body["steps"]]
    parts = [texts.plain(_head(body)), *([texts.plain(body["message"])] if body["message"] else [])]
    parts += [texts.plain(f"Wave {gate['wave']}: {gate['message']}") for gate in body.get("gates", [])]
    parts.append(texts.table(rows, ("NODE", "WAVE", "STATE", "HOW", "SAYS")))
    failed = body["terminal"] and body["state"] not in GOOD_ENDS
    return body, "\n".join(parts), 1 if failed else 0


def _head(body: dict[str, Any]) -> str:
    """Which rollout it is and where it stands; consoles before waves do not tell of any."""
    wave = f", wave {body['wave']} of {body['waves']}" if body.get("waves", 1) > 1 else ""
    wave = ", waits for an earlier stage" if body.get("wave") == 0 and not body["terminal"] else wave
    until = f" until {body['soaks_until']}" if body.get("soaks_until") else ""
    return f"Rollout {body['id']} of {body['fleet']}, revision {body['revision']}: {body['state']}{wave}{until}"


def trace_request(api: Api, asked: argparse.Namespace) -> Done:
    """Ask which route wins."""
    url = urlsplit(asked.target)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise Failure("Give the whole URL, such as https://shop.example.com/cart.")
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    body: dict[str, Any] = {"scheme": url.scheme, "method": asked.method.upper(), "host": url.hostname, "path": path}
    body["headers"] = dict(_header(text) for text in asked.header)
    if asked.client:
        body["client"] = asked.client
    if asked.load_balancer:
        body["load_balancer"] = asked.load_balancer
    found = api("POST", "trace", body=body)
    return found, _traced(found), 0


def _traced(found: dict[str, Any]) -> str:
    """An answer per load balancer that the request could come to, with the routes that it passed by."""
    if not found["answers"]:
        return "No load balancer serves this request for one of your hostnames."
    parts = []
    for answer in found["answers"]:
        parts.append(texts.plain(f"{answer['load_balancer']}/{answer['listener']}: {answer['message']}"))
        if guards := answer.get("guards"):  # a console of an earlier version does not tell
            parts.append(texts.plain(f"    policies may reject it before: {', '.join(guards)}"))
        parts += [texts.plain(f"    not {over['route']}: {over['message']}") for over in answer["passed_over"]]
        parts += [texts.plain(_served(each)) for each in answer["regions"]]
    if found["waits_for_verification"]:
        parts.append("The hostname is not verified yet. Until then, no node has these routes.")
    return "\n".join(parts)


def _served(each: dict[str, Any]) -> str:
    where = each["served_in"] or "nowhere"
    ready = each["ready_servers"]
    servers = "server" if ready == 1 else "servers"
    return f"    in {each['region']}: {each['pool']}, served in {where}, {ready} {servers} ready"


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise Failure(f"Write a header as NAME:VALUE, not {text!r}.")
    return name.strip(), value.strip()


def show_logs(api: Api, asked: argparse.Namespace) -> Done:
    """Entries of the audit log: who changed what and why. Requests of clients: `spillway requests`."""
    names = ("actor", "kind", "action", "q", "since", "until")
    query = {name: getattr(asked, name) for name in names if getattr(asked, name)}
    items = api("GET", "audit-entries", query=query | {"limit": str(asked.limit)})["items"]
    rows = [[_cell(entry, name) for name in LOG_FIELDS] for entry in items]
    head = "Who changed what in your account (the audit log):"
    return items, f"{head}\n{texts.table(rows, [name.upper() for name in LOG_FIELDS])}", 0


def _cell(entry: dict[str, Any], name: str) -> object:
    if name == "object":
        return f"{entry.get('kind', '')} {entry.get('object', '')}".strip()
    return entry.get(name, "")
