"""`reverse_proxy` as a pool: its servers, and how they are chosen, checked and reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.compiler.grammar import GrammarError
from apps.compiler.grammars.servers import MOST_RETRIES
from apps.definitions.shapes.servers.source import source as source_of
from apps.importing.caddy.context import Caddy
from apps.importing.caddy.durations import time_at
from apps.importing.caddy.pools.checks import checks, limits
from apps.importing.caddy.pools.reaching import transport
from apps.importing.haproxy.pools.addresses import server_at
from apps.importing.values.fields import listed, mapping, whole
from apps.importing.values.parsing import Path

OTHER_HASH = "Clients are spread by another hash, so one may change its server once."
IN_TURN = "Servers are chosen in turn: no hash is made of this."
BALANCE = {"random": "random", "random_choose": "random", "round_robin": "roundrobin",
           "weighted_round_robin": "roundrobin", "least_conn": "leastconn", "first": "roundrobin",
           "ip_hash": "source", "client_ip_hash": "source"}  # fmt: skip


def pool_of(caddy: Caddy, path: Path) -> str | None:
    """The key of the pool; None where its servers cannot be named."""
    spec: dict[str, Any] = {"protocol": "http", **_balance(caddy, path), "backends": []}
    backend = _found_servers(caddy, path) or _servers(caddy, path)
    if backend is None:
        return None
    spec["backends"] = [{"region": caddy.context.options.region, **backend}]
    spec |= transport(caddy, (*path, "transport"), _called(caddy, path).rpartition(":")[0])
    spec |= checks(caddy, (*path, "health_checks"))
    limits(caddy, path, spec)
    if (idle := time_at(caddy, (*path, "stream_timeout"))) is not None:
        spec["tunnel_timeout_ms"] = idle
    key = caddy.made.pool(caddy.context, _called(caddy, path), spec)
    for name in ("upstreams", "dynamic_upstreams"):
        for line in caddy.fields.below((*path, name)):
            caddy.ledger.belongs(line, f"Pool {caddy.made.names[key]}")
    return key


def _called(caddy: Caddy, path: Path) -> str:
    dials = [str(each.get("dial", "")) for _, each in caddy.fields.each(*path, "upstreams")]
    dynamic = mapping(caddy.fields.at(*path, "dynamic_upstreams"))
    return dials[0] if dials else str(dynamic.get("name") or "servers")


def _found_servers(caddy: Caddy, path: Path) -> dict[str, Any] | None:
    """`dynamic_upstreams`: servers by their addresses in DNS."""
    at = (*path, "dynamic_upstreams")
    said = mapping(caddy.fields.at(*at))
    if not said:
        return None
    source, name, port = str(said.get("source")), str(said.get("name", "")), str(said.get("port", "80"))
    if source not in ("a", "srv") or "{" in f"{name}{port}":
        caddy.fields.impossible(at, "Servers are looked up by a fixed name in DNS (A, AAAA or SRV) here.")
        return None
    for key in said:
        if key in ("source", "name", "port", "service", "proto", "refresh", "versions"):
            caddy.fields.mapped((*at, key))
    service, proto = said.get("service"), said.get("proto")
    whole = f"_{service}._{proto}.{name}" if service and proto else name
    try:
        return {"servers_from": source_of(f"dns://{name}:{port}" if source == "a" else f"srv://{whole}")}
    except GrammarError as error:
        caddy.fields.impossible(at, error.message)
        return None


def _servers(caddy: Caddy, path: Path) -> dict[str, Any] | None:
    found: dict[tuple[str, int], dict[str, Any]] = {}
    named = False
    weights = listed(caddy.fields.at(*path, "load_balancing", "selection_policy", "weights"))
    first = caddy.fields.at(*path, "load_balancing", "selection_policy", "policy") == "first"
    for number, (at, each) in enumerate(caddy.fields.each(*path, "upstreams")):
        text = str(each.get("dial", "")).removeprefix("tcp/")
        caddy.fields.mapped((*at, "dial"))
        if "{" in text:
            caddy.fields.impossible((*at, "dial"), "A server has an address that is no part of the request.")
            continue
        named = True
        text = "/" + text.removeprefix("unix/").lstrip("/") if text.startswith("unix") else text
        endpoint = server_at(caddy.context, caddy.line((*at, "dial")), text, 80)
        if endpoint is None:
            continue
        weight = whole(weights[number], 1) if number < len(weights) else 1
        server = {"name": f"server-{number + 1}", "address": endpoint.address, "port": endpoint.port,
                  "weight": min(256, weight)}  # fmt: skip
        found.setdefault((endpoint.address, endpoint.port), server | ({"backup": True} if first and found else {}))
    return {"servers": list(found.values())} if named else None


def _balance(caddy: Caddy, path: Path) -> dict[str, Any]:
    """The policy by which a server is chosen; chance where none is said."""
    at = (*path, "load_balancing")
    policy = mapping(caddy.fields.at(*at, "selection_policy"))
    name = str(policy.get("policy", "random"))
    for each in ("policy", "weights", "choose"):
        if each in policy:
            caddy.fields.mapped((*at, "selection_policy", each))
    found: dict[str, Any] = {"balance": BALANCE.get(name, "roundrobin")}
    if name in ("ip_hash", "client_ip_hash"):
        caddy.fields.differs((*at, "selection_policy", "policy"), OTHER_HASH)
    if name in ("header", "cookie"):
        found |= {"persistence": _persistence(caddy, (*at, "selection_policy"), policy)}
    elif name not in BALANCE:
        caddy.fields.differs((*at, "selection_policy"), IN_TURN)
    return found | _retries(caddy, at)


def _persistence(caddy: Caddy, at: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    caddy.fields.differs(at, "Clients that have a server already find one anew, once.")
    if policy.get("policy") == "cookie":
        return {"by": "cookie", "cookie": str(policy.get("name") or "lb")}
    return {"by": "header", "header": str(policy.get("field", ""))}


def _retries(caddy: Caddy, at: Path) -> dict[str, Any]:
    retries, until = caddy.fields.at(*at, "retries"), caddy.fields.at(*at, "try_duration")
    for name in ("retries", "try_duration", "try_interval"):
        if caddy.fields.at(*at, name) is not None:
            caddy.fields.mapped((*at, name))
    if until is not None:
        caddy.fields.differs((*at, "try_duration"), "Retries are bounded by their number, not by time.")
    if caddy.fields.at(*at, "retry_match") is not None:
        caddy.fields.impossible((*at, "retry_match"), "Requests that can be repeated are retried.")
    return {"retries": {"attempts": min(int(retries), MOST_RETRIES)}} if isinstance(retries, int) and retries else {}
