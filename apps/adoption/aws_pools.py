"""Target groups with their targets and health checks as pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.adoption.contract import Report, Wish
from apps.adoption.naming import Names

Block = Mapping[str, Any]

PROTOCOLS = {"HTTP": "http", "TCP": "tcp"}
BALANCE = {"round_robin": "roundrobin", "least_outstanding_requests": "leastconn", "weighted_random": "random"}
# Attributes that change what clients see; those that have their usual value say nothing.
LOST = {
    "slow_start.duration_seconds": ("0", "New servers get their full share at once."),
    "load_balancing.algorithm.anomaly_mitigation": ("off", "Only the health check decides whether a server is up."),
    "proxy_protocol_v2.enabled": ("false", "Servers do not get the client's address by the PROXY protocol."),
    "preserve_client_ip.enabled": ("false", "Servers see the address of the load balancer."),
    "lambda.multi_value_headers.enabled": ("false", "A function cannot be a server."),
}
USUAL_MATCHER = "200"


class Pools:
    """Target groups that were asked for, each once, as pools; one that cannot be a pool is None."""

    def __init__(self, described: Block, wish: Wish, names: Names, report: Report) -> None:
        self._groups: Mapping[str, Block] = described.get("targetGroups", {})
        self._machines: Mapping[str, str] = described.get("instances", {})
        self._wish, self._names, self._report = wish, names, report
        self._found: dict[str, str | None] = {}
        self.documents: list[dict[str, Any]] = []

    def name_of(self, arn: str, protocol: str = "http") -> str | None:
        """The pool of a target group, None when it could not become one of this protocol."""
        if arn not in self._found:
            self._found[arn] = self._adopted(arn, protocol)
        return self._found[arn]

    def unused(self) -> None:
        """Say what became of groups that no listener and no rule leads to."""
        for arn, group in self._groups.items():
            if arn not in self._found:
                self._report.left_out(
                    f"target group {group['TargetGroupName']}", "No imported listener or rule uses it."
                )

    def _adopted(self, arn: str, protocol: str) -> str | None:
        group = self._groups.get(arn)
        found = f"target group {(group or {}).get('TargetGroupName', arn)}"
        if group is None:
            self._report.left_out(found, "It could not be read.")
            return None
        spoken = group.get("Protocol", "")
        if PROTOCOLS.get(spoken) != protocol:
            what = spoken or f"of type {group.get('TargetType')}"
            self._report.left_out(found, f"It is {what}, but pools connect to servers by http or tcp, without TLS.")
            return None
        name = self._names.of(group["TargetGroupName"])
        region = self._region(arn)
        if region is None:
            self._report.left_out(found, "Map the region of the cloud to one of your regions.")
            return None
        attributes = group.get("Attributes", {})
        backend = {"region": region, "servers": self._servers(found, group)}
        spec = {
            "protocol": protocol,
            "balance": self._balance(found, attributes),
            "backends": [backend],
            **self._health_check(found, group),
        }
        for key, (usual, reason) in LOST.items():
            if attributes.get(key, usual) not in (usual, ""):
                self._report.lossy(f"{found}, {key}", reason, "Pool", name)
        self._report.mapped(found, "Pool", name)
        self.documents.append({"kind": "Pool", "name": name, "account": self._wish.account, "spec": spec})
        return name

    def _region(self, arn: str) -> str | None:
        """`arn:aws:elasticloadbalancing:eu-central-1:…` → the region of ours that stands for it."""
        parts = arn.split(":")
        return self._wish.regions.get(parts[3]) if len(parts) > 3 else None

    def _servers(self, found: str, group: Block) -> list[dict[str, Any]]:
        names, servers = Names("server"), []
        for target in sorted(group.get("Targets", ()), key=lambda each: (each["Id"], each.get("Port") or 0)):
            port = int(target.get("Port") or group.get("Port") or 80)
            address = self._machines.get(target["Id"], "") if group.get("TargetType") != "ip" else target["Id"]
            if not address:
                self._report.left_out(f"{found}, target {target['Id']}", "Its address could not be read.")
                continue
            if address != target["Id"]:
                reason = f"The server is its present address, {address}. A replacement is not added automatically."
                self._report.lossy(f"{found}, target {target['Id']}", reason)
            name = names.of(address.replace(".", "-").replace(":", "-"), str(port))
            servers.append({"name": name, "address": address, "port": port})
        return servers

    def _balance(self, found: str, attributes: Block) -> str:
        if attributes.get("stickiness.enabled") == "true":
            kind = attributes.get("stickiness.type", "")
            if kind != "source_ip":
                self._report.lossy(found, "Stickiness uses the client's address, not a cookie.")
            return "source"
        return BALANCE.get(attributes.get("load_balancing.algorithm.type", "round_robin"), "roundrobin")

    def _health_check(self, found: str, group: Block) -> dict[str, Any]:
        if group.get("HealthCheckEnabled") is False:
            return {}
        words: dict[str, Any] = {
            "interval_ms": 1000 * int(group.get("HealthCheckIntervalSeconds") or 30),
            "timeout_ms": 1000 * int(group.get("HealthCheckTimeoutSeconds") or 5),
            "rise": int(group.get("HealthyThresholdCount") or 5),
            "fall": int(group.get("UnhealthyThresholdCount") or 2),
        }
        spoken = group.get("HealthCheckProtocol", "HTTP")
        if spoken == "HTTP":
            words |= {"path": group.get("HealthCheckPath") or "/", **self._expected(found, group)}
        elif spoken != "TCP":
            self._report.lossy(found, f"Its health check by {spoken} becomes a TCP connection check.")
        port = str(group.get("HealthCheckPort", "traffic-port"))
        if port.isdigit() and port != str(group.get("Port")):
            words["port"] = int(port)
        return {"health_check": words}

    def _expected(self, found: str, group: Block) -> dict[str, Any]:
        """A check of ours expects one status."""
        matcher = str((group.get("Matcher") or {}).get("HttpCode") or USUAL_MATCHER)
        first = matcher.replace(",", "-").partition("-")[0]
        if first != matcher:
            self._report.lossy(found, f"Its health check accepts {matcher}; the imported check expects {first}.")
        return {"expect_status": int(first)}
