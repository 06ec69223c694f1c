"""Servers of `stream`: tcp listeners with one pool, or with pools by what clients send first."""

from __future__ import annotations

from typing import Any

from apps.importing.context import PRIVATE
from apps.importing.nginx.pools.upstreams import servers_of
from apps.importing.nginx.rules.access import REFUSED, access
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.nginx.text.units import time_of
from apps.importing.nginx.traffic.context import Nginx
from apps.importing.nginx.traffic.listeners import add_tls
from apps.importing.nginx.traffic.ports import Port, ports_of
from apps.importing.nginx.traffic.prereads import BY_FIRST_BYTES, ENDED, READ, Prereads
from apps.importing.verdicts import Verdict

SHORT = "Clients that send fewer than five bytes come to the default pool all the same; nginx closes their connections."


def read_streams(nginx: Nginx, stream: Directive) -> None:
    """Each server as a load balancer with its ports."""
    for server in stream.each("server"):
        ports = [each for each in ports_of(nginx, [server]) if not each.has("udp")]
        passing = server.last("proxy_pass")
        if not ports or passing is None:
            why = "It takes no connections of TCP, or passes them to nobody."
            for each in server.each("return"):
                nginx.ledger.impossible(each.line, "Listeners of tcp say nothing themselves; put a server behind.")
            for each in (server, *server.everything()):
                nginx.ledger.note(each.line, Verdict.DEAD, why)
            continue
        _server(nginx, server, ports, passing)


def _server(nginx: Nginx, server: Directive, ports: list[Port], passing: Directive) -> None:
    ledger = nginx.ledger
    ledger.mapped(server.line)
    pools = _pools(nginx, server, passing, ends_tls=ports[0].has("ssl"))
    if not pools:
        return
    for each in server.all_inherited("ssl_preread"):
        ledger.mapped(each.line)
        if value_of(each) == "on" and "default_pool" in pools:
            ledger.differs(each.line, SHORT)
    name = nginx.context.name("LoadBalancer", f"nginx-tcp-{ports[0].number}")
    said = _access(nginx, server)
    listeners = [_listener(nginx, server, port) | said | pools for port in ports]
    nginx.made.load_balancers[name] = {"fleets": list(nginx.context.options.fleets), "listeners": listeners}
    for each in (server, passing, *server.each("listen")):
        ledger.mapped(each.line, f"LoadBalancer {name}")


def _access(nginx: Nginx, server: Directive) -> dict[str, Any]:
    """`allow` and `deny`, as lists of the listener."""
    effect = next(access(nginx.context, server), None)
    if effect is None:
        return {}
    if effect == REFUSED:
        return {"access": {"allow": [nginx.context.network_list((), "nobody")]}}
    _, kind, name = effect.data
    return {"access": {kind: [name]}}


def _listener(nginx: Nginx, server: Directive, port: Port) -> dict[str, Any]:
    spec: dict[str, Any] = {"name": f"tcp-{port.number}", "protocol": "tcp", "port": port.number}
    if port.static_ip:
        spec["static_ip"] = port.static_ip
    if port.has("ssl"):
        add_tls(nginx, port, spec)
    if port.has("proxy_protocol"):
        spec["client_address"] = {"proxy_protocol_from": list(PRIVATE)}
        for _, each in port.listens:
            why = "The PROXY protocol is believed from private networks; name those of the balancer in front."
            nginx.ledger.differs(each.directive.line, why)
    if (idle := time_of(server.inherited("proxy_timeout"), nginx.ledger)) is not None:
        spec["connections"] = {"client_timeout_ms": idle}
    return spec


def _pools(nginx: Nginx, server: Directive, passing: Directive, *, ends_tls: bool) -> dict[str, Any]:
    """The fields of a listener that name pools; none where they cannot be said."""
    text = value_of(passing)
    if not text.startswith("$"):
        return {"default_pool": _pool(nginx, server, passing, text)}
    known = ENDED if ends_tls else READ if value_of(server.inherited("ssl_preread")) == "on" else ()
    found = Prereads(nginx.variables.lines, known, nginx.ledger).read(text)
    if found is None:
        nginx.ledger.impossible(passing.line, BY_FIRST_BYTES)
        return {}
    names = [{"hostname": each, "pool": _pool(nginx, server, *way)} for each, way in found.names.items()]
    protocols = [{kind: said, "pool": _pool(nginx, server, *way)} for (kind, said), way in found.protocols.items()]
    default = _pool(nginx, server, *found.default) if found.default else None
    said = {"sni_routes": names, "protocol_routes": protocols, "default_pool": default}
    return {name: value for name, value in said.items() if value}


def _pool(nginx: Nginx, server: Directive, directive: Directive, target: str) -> str:
    upstream = nginx.upstreams.get(target)
    spec: dict[str, Any] = {"protocol": "tcp"}
    if upstream is None and ":" not in target:
        nginx.ledger.impossible(directive.line, "A server has a port.")
    spec |= servers_of(nginx, upstream, target, directive, 443)
    spec |= {"connect_timeout_ms": 60_000, "server_timeout_ms": 600_000, "tunnel_timeout_ms": 600_000}
    if (time := time_of(server.inherited("proxy_connect_timeout"), nginx.ledger)) is not None:
        spec["connect_timeout_ms"] = time
    if (idle := time_of(server.inherited("proxy_timeout"), nginx.ledger)) is not None:
        spec |= {"server_timeout_ms": idle, "tunnel_timeout_ms": idle}
    proxied = server.inherited("proxy_protocol")
    if proxied is not None:
        nginx.ledger.mapped(proxied.line)
        if value_of(proxied) == "on":
            spec["proxy_protocol"] = "v1"
    encrypted = server.inherited("proxy_ssl")
    if encrypted is not None and value_of(encrypted) == "on":
        nginx.ledger.differs(encrypted.line, "Certificates of servers are not verified.")
        spec["server_tls"] = {"verify": "none"}
    name = nginx.made.names[nginx.made.pool_of_connections(nginx.context, target, spec)]
    for each in (directive, *((upstream, *(upstream.block or ())) if upstream is not None else ())):
        nginx.ledger.belongs(each.line, f"Pool {name}")
    return name
