"""A described Classic Load Balancer as a load balancer with a pool for each port of its machines.

A Classic Load Balancer has no rules: every listener leads to one port of the same machines, so there are no routes and
each listener of ours has a default pool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.adoption.contract import Adoption, Report, Wish
from apps.adoption.naming import Names
from apps.drivers.clouds.contract import FoundLoadBalancer

Block = Mapping[str, Any]
PROTOCOLS = {"HTTP": ("http", "http"), "HTTPS": ("https", "http"), "TCP": ("tcp", "tcp")}
IDLE_S = 60


def adopt(found: FoundLoadBalancer, wish: Wish) -> Adoption:
    """Documents of pools and the load balancer, in this order, and what became of each thing."""
    report, names = Report(), Names(wish.name)
    balancer: Block = found.described.get("loadBalancer", {})
    pools: dict[tuple[int, str], str] = {}
    documents: list[dict[str, Any]] = []
    listeners: list[dict[str, Any]] = []
    for description in balancer.get("ListenerDescriptions", ()):
        listener = description["Listener"]
        made = _listener(listener, wish, report)
        if made is None:
            continue
        key = (int(listener["InstancePort"]), PROTOCOLS[listener["Protocol"]][1])
        if key not in pools:
            pools[key] = names.of(found.name, str(key[0]))
            documents.append(_pool(found, pools[key], key, wish, report))
        listeners.append({**made, "default_pool": f"{wish.account}/{pools[key]}"})
    _rest(found, balancer, report)
    report.mapped(f"{found.kind} {found.name}", "LoadBalancer", wish.name)
    spec: dict[str, Any] = {"listeners": listeners, **({"stacks": [wish.stack]} if wish.stack else {})}
    return Adoption((*documents, {"kind": "LoadBalancer", "name": wish.name, "spec": spec}), tuple(report.lines))


def _listener(listener: Block, wish: Wish, report: Report) -> dict[str, Any] | None:
    port, spoken, behind = int(listener["LoadBalancerPort"]), listener["Protocol"], listener["InstanceProtocol"]
    where = f"listener {spoken} {port}"
    if spoken not in PROTOCOLS:
        report.left_out(where, f"Listeners support only http, https and tcp, not {spoken}.")
        return None
    protocol, _ = PROTOCOLS[spoken]
    found: dict[str, Any] = {"name": f"{protocol}-{port}", "protocol": protocol, "port": port}
    if protocol == "https":
        theirs = str(listener.get("SSLCertificateId", ""))
        if theirs not in wish.certificates:
            reason = f"Upload the certificate with its key and map {theirs} to it, because no cloud shows a key."
            report.left_out(where, reason)
            return None
        found["certificates"] = [f"{wish.account}/{wish.certificates[theirs]}"]
    if behind not in ("HTTP", "TCP"):
        report.left_out(
            where, f"It connects to its machines by {behind}, but pools connect to servers by http or tcp, without TLS."
        )
        return None
    report.mapped(where, "LoadBalancer", f"{wish.name}/{found['name']}")
    return found


def _pool(found: FoundLoadBalancer, name: str, key: tuple[int, str], wish: Wish, report: Report) -> dict[str, Any]:
    port, protocol = key
    balancer: Block = found.described.get("loadBalancer", {})
    region = _region(balancer, wish)
    backends = [{"region": region, "servers": _servers(found, port, report)}] if region else []
    if not region:
        report.left_out(f"machines of {found.name}", "Map the region of the cloud to one of your regions.")
    spec = {"protocol": protocol, "balance": "leastconn" if protocol == "http" else "roundrobin", "backends": backends}
    report.mapped(f"machines of {found.name}, port {port}", "Pool", name)
    check = _health_check(found, port, balancer, report)
    return {"kind": "Pool", "name": name, "account": wish.account, "spec": {**spec, **check}}


def _region(balancer: Block, wish: Wish) -> str | None:
    """Zones are `eu-central-1a`: the letter is the zone's own."""
    regions = {zone.rstrip("abcdefghijklmnopqrstuvwxyz") for zone in balancer.get("AvailabilityZones", ())}
    return next((wish.regions[each] for each in sorted(regions) if each in wish.regions), None)


def _servers(found: FoundLoadBalancer, port: int, report: Report) -> list[dict[str, Any]]:
    names, servers = Names("server"), []
    for machine in sorted(each["InstanceId"] for each in found.described["loadBalancer"].get("Instances", ())):
        address = found.described.get("instances", {}).get(machine, "")
        where = f"machine {machine}, port {port}"
        if not address:
            report.left_out(where, "Its address could not be read.")
            continue
        reason = f"The server is its present address, {address}. A replacement is not added automatically."
        report.lossy(where, reason)
        servers.append({"name": names.of(address.replace(".", "-"), str(port)), "address": address, "port": port})
    return servers


def _health_check(found: FoundLoadBalancer, port: int, balancer: Block, report: Report) -> dict[str, Any]:
    """`HTTP:8080/health` or `TCP:8080`."""
    check = balancer.get("HealthCheck")
    if not check:
        return {}
    protocol, _, rest = str(check.get("Target", "")).partition(":")
    where, slash, path = rest.partition("/")
    words: dict[str, Any] = {
        "interval_ms": 1000 * int(check["Interval"]),
        "timeout_ms": 1000 * int(check["Timeout"]),
        "rise": int(check["HealthyThreshold"]),
        "fall": int(check["UnhealthyThreshold"]),
    }
    if protocol == "HTTP":
        words["path"] = slash + path
    elif protocol != "TCP":
        report.lossy(f"health check of {found.name}", f"Its health check by {protocol} becomes a TCP connection check.")
    if where != str(port):
        report.lossy(
            f"health check of {found.name}", f"Its health check uses the port of the server, {port}, not to {where}."
        )
    return {"health_check": words}


def _rest(found: FoundLoadBalancer, balancer: Block, report: Report) -> None:
    where, attributes = f"{found.kind} {found.name}", found.described.get("attributes", {})
    policies = balancer.get("Policies", {})
    for field, reason in (
        ("AppCookieStickinessPolicies", "Stickiness by the cookie of the application is gone."),
        ("LBCookieStickinessPolicies", "Stickiness by a cookie is gone."),
        ("OtherPolicies", "Policies of TLS and of the PROXY protocol are not imported."),
    ):
        if policies.get(field):
            report.lossy(f"{where}, policies", reason)
    if attributes.get("AccessLog", {}).get("Enabled"):
        report.lossy(f"{where}, access log", "The log bucket of the stack decides where logs go.")
    if attributes.get("ConnectionSettings", {}).get("IdleTimeout", IDLE_S) != IDLE_S:
        report.lossy(f"{where}, idle timeout", "The timeouts of the pools end connections.")
    if balancer.get("SecurityGroups"):
        report.lossy(f"{where}, security groups", "The client networks of the stack decide who may connect.")
    if balancer.get("Scheme") == "internal":
        report.lossy(f"{where}, scheme", "The imported load balancer is public.")
