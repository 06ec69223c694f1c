"""Target groups for AWS: one for each backend and each load balancer that uses it, which is all AWS allows."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from apps.compiler.model.servers import CheckKind, ProxyProtocol
from apps.compiler.model.shared import Balance, HealthCheck, Protocol, Server, ServerState
from apps.compiler.model.stack import CloudBackend, CloudPool, StackSnapshot
from apps.compiler.targets.terraform.aws.limits import NAME
from apps.compiler.targets.terraform.aws.naming import tags
from apps.compiler.targets.terraform.aws.servers import protocol_of, slow_start
from apps.compiler.targets.terraform.aws.timeouts import check_times, seconds
from apps.compiler.targets.terraform.draft import Draft, Resource
from apps.compiler.targets.terraform.expressions import renewed_name, resource_name

_GROUP, _ATTACHMENT = "aws_lb_target_group", "aws_lb_target_group_attachment"
_PORTS = {"HTTP": 80, "HTTPS": 443, "TCP": 80}
GRPC_CHECK = "/grpc.health.v1.Health/Check"
_HEALTHY_GRPC = "0"
_ALGORITHMS = {
    Balance.ROUNDROBIN: "round_robin",
    Balance.LEASTCONN: "least_outstanding_requests",
    Balance.SOURCE: "round_robin",
    Balance.RANDOM: "weighted_random",
}
STICKY_S = 86_400
LONGEST_STICKY_S = 604_800
_LONGEST_DELAY_S = 3600
_WITHOUT_CHECK = HealthCheck(interval_ms=10_000, timeout_ms=5_000, rise=2, fall=3)


@dataclass(slots=True)
class Groups:
    """Target groups of the draft, made when somebody first needs them."""

    draft: Draft
    snapshot: StackSnapshot
    _made: dict[tuple[str, str], Resource] = field(default_factory=dict)

    def group(self, pool: CloudPool, backend: CloudBackend, user: str) -> Resource:
        """The group of a backend behind the load balancer `user` (`lb-3`, `lb-3-tcp`, `ip-4`)."""
        key = (backend.id, user)
        if key not in self._made:
            self._made[key] = self._make(pool, backend, user)
        return self._made[key]

    def _make(self, pool: CloudPool, backend: CloudBackend, user: str) -> Resource:
        vpc = self.snapshot.network.vpc
        protocol, version = protocol_of(pool)
        words = (backend.id, user, protocol.lower(), *([version.lower()] if version else []))
        body = {
            **renewed_name(self.snapshot.id, *words, forced_by=(vpc,), longest=NAME),
            "target_type": "ip",
            "port": _PORTS[protocol],
            "protocol": protocol,
            **({"protocol_version": version} if version else {}),
            "vpc_id": vpc,
            "deregistration_delay": str(min(seconds(pool.server_timeout_ms), _LONGEST_DELAY_S)),
            "health_check": [_health_check(pool)],
            "tags": tags(backend.id, pool.account),
            **_choice(pool),
            **slow_start(pool),
        }
        group = self.draft.add(_GROUP, resource_name(backend.id, user), backend.id, body)
        for server in _takers(backend):
            self._attach(group, backend, server, user)
        return group

    def _attach(self, group: Resource, backend: CloudBackend, server: Server, user: str) -> None:
        body = {"target_group_arn": group["arn"], "target_id": server.address, "port": server.port}
        if self._is_outside(backend, server):
            body["availability_zone"] = "all"
        self.draft.add(_ATTACHMENT, resource_name(server.id, user), server.id, body)

    def _is_outside(self, backend: CloudBackend, server: Server) -> bool:
        """Whether AWS must be told that the address is not in the VPC: it refuses one that it does not find there."""
        networks = self.snapshot.network.vpc_networks
        if networks:
            return not any(IPv4Address(server.address) in IPv4Network(each) for each in networks)
        return bool(self.snapshot.region) and backend.region != self.snapshot.region


def _takers(backend: CloudBackend) -> list[Server]:
    """The servers that get traffic; a drained region has none."""
    if backend.capacity_scaler <= 0:
        return []
    ready = (each for each in backend.servers if each.state is ServerState.READY and each.weight > 0)
    return [each for each in ready if not each.backup]


def _choice(pool: CloudPool) -> dict[str, Any]:
    """How a server is chosen, and whether clients stay with it."""
    is_source = pool.balance is Balance.SOURCE or pool.persistence is not None
    if pool.protocol is Protocol.TCP:
        return {
            "preserve_client_ip": "false",
            **({"proxy_protocol_v2": True} if pool.proxy_protocol is ProxyProtocol.V2 else {}),
            "stickiness": [{"type": "source_ip", "enabled": is_source}],
        }
    return {
        "load_balancing_algorithm_type": _ALGORITHMS[pool.balance],
        "stickiness": [{"type": "lb_cookie", "enabled": is_source, "cookie_duration": _sticky_seconds(pool)}],
    }


def _sticky_seconds(pool: CloudPool) -> int:
    wanted = pool.persistence.idle_s if pool.persistence else None
    return min(wanted or STICKY_S, LONGEST_STICKY_S)


def _health_check(pool: CloudPool) -> dict[str, Any]:
    """As near to ours as a target group comes; a check that is always on asks for a path unless it only connects."""
    check = pool.health_check or _WITHOUT_CHECK
    interval, timeout, rise, fall = check_times(check)
    times = {"interval": interval, "timeout": timeout, "healthy_threshold": rise, "unhealthy_threshold": fall}
    common = {"enabled": True, "port": str(check.port or "traffic-port"), **times}
    if pool.protocol is Protocol.TCP and not check.path:
        return {**common, "protocol": "TCP"}
    protocol, _ = protocol_of(pool)
    if check.kind is CheckKind.GRPC:
        return {**common, "protocol": protocol, "path": GRPC_CHECK, "matcher": _HEALTHY_GRPC}
    protocol = "HTTP" if protocol == "TCP" else protocol
    wanted = ",".join(check.expect_statuses) or str(check.expect_status)
    matcher = wanted if check.path else "200-499"
    return {**common, "protocol": protocol, "path": check.path or "/", "matcher": matcher}
