"""`upstream` blocks, and addresses behind `proxy_pass`, as the servers of a pool."""

from __future__ import annotations

from typing import Any

from apps.importing.haproxy.pools.addresses import server_at
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.nginx.text.units import milliseconds
from apps.importing.nginx.traffic.context import Nginx
from apps.importing.verdicts import Verdict

CHECKED = "Nodes also connect to the servers every two seconds; that brings a server back."
KEPT_OPEN = "Nodes keep connections to servers open, and share them."
MOST_AT_ONCE = 100_000


def servers_of(
    nginx: Nginx, upstream: Directive | None, target: str, directive: Directive, port: int
) -> dict[str, Any]:
    """Balance, servers, and what their options say of the whole pool."""
    region = nginx.context.options.region
    if upstream is None:
        server = _server(nginx, directive, target, port, "server-1")
        return {"balance": "roundrobin", "backends": [{"region": region, "servers": [server] if server else []}]}
    nginx.ledger.mapped(upstream.line)
    found: dict[str, Any] = {"balance": _balance(nginx, upstream)}
    servers: dict[tuple[str, int], dict[str, Any]] = {}
    lines = [each for each in upstream.each("server") if each.args]
    for number, each in enumerate(lines, 1):
        server = _server(nginx, each, each.args[0], port, f"server-{number}")
        if server is None:
            continue
        _options(nginx, each, server)
        first = servers.setdefault((server["address"], server["port"]), server)
        if first is not server:
            first["weight"] = min(256, first["weight"] + server["weight"])
            nginx.ledger.differs(each.line, "A pool has each address once; the weights are added.")
    found |= _of_all(nginx, lines)
    return found | {"backends": [{"region": region, "servers": list(servers.values())}]}


def _server(nginx: Nginx, directive: Directive, target: str, port: int, name: str) -> dict[str, Any] | None:
    nginx.ledger.mapped(directive.line)
    text = target if ":" in target and not target.endswith("]") else f"{target}:{port}"
    text = target.rstrip(":") if target.startswith("unix:") else text
    moved = nginx.context.options.servers
    if target in moved and text not in moved:
        text = target
    endpoint = server_at(nginx.context, directive.line, text, port)
    if endpoint is None:
        return None
    return {"name": name, "address": endpoint.address, "port": endpoint.port, "weight": 1}


def _options(nginx: Nginx, directive: Directive, server: dict[str, Any]) -> None:
    for option in directive.args[1:]:
        name, _, value = option.partition("=")
        if name == "weight" and value.isdecimal():
            server["weight"] = min(256, max(1, int(value)))
        elif name == "backup":
            server["backup"] = True
        elif name == "down":
            server["state"] = "maintenance"
        elif name in ("resolve", "service"):
            nginx.ledger.differs(directive.line, "One server has the name; the agent asks for its address again.")
        elif name in ("route", "drain", "slow_start"):
            nginx.ledger.impossible(directive.line, f"{name} is a setting of the whole pool.")
        elif name not in ("max_fails", "fail_timeout", "max_conns"):
            nginx.ledger.impossible(directive.line, f"nginx has no option {name} of a server.")


def _of_all(nginx: Nginx, lines: list[Directive]) -> dict[str, Any]:
    """max_fails, fail_timeout and max_conns, which all servers of a pool have alike."""
    found: dict[str, Any] = {}
    fails, times, most = (_common(nginx, lines, name) for name in ("max_fails", "fail_timeout", "max_conns"))
    if fails == "0":
        times = None
    if (fails and fails != "0") or times:
        found["health_check"] = {}
        ejection: dict[str, Any] = {"observe": "connections", "errors": min(1000, int(fails or 1))}
        if times and (back := milliseconds(times)):
            ejection["return_after_ms"] = min(max(1, back), 3_600_000)
        found["outlier_ejection"] = ejection
        for each in lines:
            if any(arg.startswith(("max_fails=", "fail_timeout=")) for arg in each.args):
                nginx.ledger.differs(each.line, CHECKED)
    if most and most.isdecimal() and int(most):
        found["connections"] = {"max_per_server": min(int(most), MOST_AT_ONCE)}
    return found


def _common(nginx: Nginx, lines: list[Directive], name: str) -> str | None:
    """The value that servers have in common, or the first one."""
    values = [next((arg.partition("=")[2] for arg in each.args if arg.startswith(f"{name}=")), None) for each in lines]
    first = next((value for value in values if value is not None), None)
    if first is not None and name == "max_fails" and not first.isdecimal():
        return None
    for each, value in zip(lines, values, strict=True):
        if first is not None and value != first:
            nginx.ledger.differs(each.line, f"All servers of a pool have the same {name}.")
    return first


def _balance(nginx: Nginx, upstream: Directive) -> str:
    found = "roundrobin"
    by_address = ("$remote_addr", "$binary_remote_addr")
    for each in upstream.block or ():
        if each.name in ("least_conn", "ip_hash", "random", "hash", "least_time"):
            nginx.ledger.mapped(each.line)
        if each.name == "least_conn":
            found = "leastconn"
        elif each.name == "random":
            found = "random"
        elif each.name == "ip_hash" or (each.name == "hash" and value_of(each) in by_address):
            found = "source"
            nginx.ledger.differs(each.line, "Clients are spread by another hash, so one may change its server once.")
        elif each.name == "least_time":
            found = "leastconn"
            nginx.ledger.differs(each.line, "The server with the fewest requests is chosen.")
        elif each.name == "hash":
            nginx.ledger.differs(each.line, f"Servers are chosen in turn: there is no hash of {value_of(each)}.")
        elif each.name.startswith("keepalive") or each.name in ("zone", "resolver"):
            nginx.ledger.note(each.line, Verdict.NODE_SETTING, KEPT_OPEN)
    return found
