"""Load balancers for AWS: an ALB for http and https, an NLB for tcp and before an ALB that keeps Elastic IPs.

| listener | without a static IP | elastic | accelerator |
|---|---|---|---|
| http, https | ALB | ALB, and an NLB with the addresses whose target it is | ALB, named to the accelerator |
| tcp, with or without TLS | NLB | NLB with the addresses | NLB, named to the accelerator |

All of one load balancer stand in one security group. An NLB keeps the addresses of its clients before an ALB, so both
let in the same networks; the NLB's own checks come from the group itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.model.listener_options import TlsPreset
from apps.compiler.model.shared import Listener, LoadBalancer, Protocol
from apps.compiler.model.stack import AddressKind, CloudAddress, CloudPool, StackSnapshot
from apps.compiler.routing import number_of
from apps.compiler.targets.terraform.aws.certificates import Certificates
from apps.compiler.targets.terraform.aws.groups import Groups
from apps.compiler.targets.terraform.aws.limits import NAME
from apps.compiler.targets.terraform.aws.listener_rules.rules import add_rules, default_action, rules_of
from apps.compiler.targets.terraform.aws.listener_rules.shares import home_of
from apps.compiler.targets.terraform.aws.naming import tags
from apps.compiler.targets.terraform.aws.timeouts import idle_timeout_s
from apps.compiler.targets.terraform.draft import Draft, Resource
from apps.compiler.targets.terraform.expressions import cloud_name, renewed_name, resource_name
from apps.compiler.targets.terraform.listener_options import default_first, is_tls13_alone

# The table of "Security policies for your Application Load Balancer": Res is what Mozilla calls intermediate, with
# forward secrecy and AEAD alone.
_SSL_POLICY = "ELBSecurityPolicy-TLS13-1-2-2021-06"
_INTERMEDIATE = "ELBSecurityPolicy-TLS13-1-2-Res-2021-06"
_TLS13_ALONE = "ELBSecurityPolicy-TLS13-1-3-2021-06"
_ALPN_POLICIES = {
    ("http/1.1",): "HTTP1Only",
    ("h2",): "HTTP2Only",
    ("http/1.1", "h2"): "HTTP2Optional",
    ("h2", "http/1.1"): "HTTP2Preferred",
}


def ssl_policy(listener: Listener) -> str:
    """AWS's name for the versions and ciphers that are offered."""
    if is_tls13_alone(listener):
        return _TLS13_ALONE
    return _INTERMEDIATE if listener.tls and listener.tls.preset is TlsPreset.INTERMEDIATE else _SSL_POLICY


def alpn_policy(listener: Listener) -> str | None:
    """AWS's name for the protocols that an NLB offers, best first; None where it has none for these."""
    return _ALPN_POLICIES.get(listener.tls.alpn) if listener.tls else None


def speaks_http2(listeners: Sequence[Listener]) -> bool:
    """Whether an ALB with these listeners speaks HTTP/2: unless all that speak TLS do without."""
    https = [each for each in listeners if each.protocol is Protocol.HTTPS]
    return not https or any(each.tls is None or each.tls.http2 for each in https)


@dataclass(frozen=True, slots=True)
class Reach:
    """Where clients find a load balancer: names for an alias or a CNAME."""

    dns_name: str
    zone_id: str


def _reach_of(resource: Resource) -> Reach:
    """That of an ALB or NLB."""
    return Reach(resource["dns_name"], resource["zone_id"])


@dataclass(slots=True)
class Balancers:
    """Load balancers of the draft."""

    draft: Draft
    snapshot: StackSnapshot
    pools: Mapping[str, CloudPool]
    addresses: Mapping[str, CloudAddress]
    accelerators: Mapping[str, Resource]
    groups: Groups
    certificates: Certificates
    reaches: dict[str, Reach] = field(default_factory=dict)
    ports_of_accelerators: dict[str, list[tuple[Listener, Resource]]] = field(default_factory=dict)
    _fronts: dict[str, Resource] = field(default_factory=dict)

    def add(self, load_balancer: LoadBalancer, security: Resource) -> None:
        """Everything of one load balancer but the fronts of its Elastic IPs, which many may share."""
        listeners = sorted(load_balancer.listeners, key=lambda each: number_of(each.id))
        http = [each for each in listeners if each.protocol is not Protocol.TCP]
        tcp = [each for each in listeners if each.protocol is Protocol.TCP]
        if http:
            self._add_alb(load_balancer, http, security)
        for listener in tcp:
            self._add_tcp(load_balancer, listener, security)

    def kind_of(self, listener: Listener) -> AddressKind | None:
        """What keeps the listener's static IP, None when it has none."""
        return self.addresses[listener.address].kind if listener.address else None

    def add_front(self, address: CloudAddress, eips: Mapping[str, Resource], security: Sequence[Resource]) -> None:
        """The NLB that keeps an elastic address, `eips` by subnet."""
        body = {
            **self._network_body(address.id, address.id, address.account, security),
            "subnet_mapping": [
                {"subnet_id": subnet, "allocation_id": eip["allocation_id"]} for subnet, eip in sorted(eips.items())
            ],
        }
        self._fronts[address.id] = self.draft.add("aws_lb", resource_name(address.id), address.id, body)

    def _add_alb(self, load_balancer: LoadBalancer, listeners: Sequence[Listener], security: Resource) -> None:
        """It is reached from inside alone when all its listeners stand behind Elastic IPs."""
        is_internal = all(self.kind_of(each) is AddressKind.ELASTIC for each in listeners)
        body = {
            "name": cloud_name(self.snapshot.id, load_balancer.id, longest=NAME),
            "load_balancer_type": "application",
            "internal": is_internal,
            "subnets": sorted(set(self.snapshot.network.subnets)),
            "security_groups": [security["id"]],
            "idle_timeout": idle_timeout_s(load_balancer, self.pools),
            "preserve_host_header": True,
            **({} if speaks_http2(listeners) else {"enable_http2": False}),
            "tags": tags(load_balancer.id, load_balancer.account),
            **self._address_type(is_internal=is_internal),
            **self._logs(load_balancer.id),
            **_moves_with([security]),
        }
        alb = self.draft.add("aws_lb", resource_name(load_balancer.id), load_balancer.id, body)
        for listener in listeners:
            rules = rules_of(load_balancer, listener.protocol)
            standing = self._add_http(load_balancer, listener, alb)
            add_rules(self.draft, self.groups, self.pools, load_balancer, rules, listener, standing)
            self._expose(load_balancer, listener, alb, standing)

    def _expose(self, load_balancer: LoadBalancer, listener: Listener, alb: Resource, standing: Resource) -> None:
        kind = self.kind_of(listener)
        if kind is AddressKind.ELASTIC:
            self._add_passage(load_balancer, listener, alb, standing)
            self._reach(load_balancer.id, listener, self._fronts[str(listener.address)])
        else:
            self._reach(load_balancer.id, listener, alb)

    def _reach(self, name: str, listener: Listener, standing: Resource) -> None:
        """Clients find what is called `name` by its first listener: at the accelerator, else where it stands."""
        accelerator = self.accelerators.get(listener.address or "")
        if accelerator is not None:
            self.ports_of_accelerators.setdefault(str(listener.address), []).append((listener, standing))
            self.reaches.setdefault(name, Reach(accelerator["dns_name"], accelerator["hosted_zone_id"]))
        else:
            self.reaches.setdefault(name, _reach_of(standing))

    def _add_http(self, load_balancer: LoadBalancer, listener: Listener, alb: Resource) -> Resource:
        body = {
            "load_balancer_arn": alb["arn"],
            "port": listener.port,
            "protocol": listener.protocol.value.upper(),
            "default_action": [default_action(self.groups, self.pools, load_balancer, listener)],
            "tags": tags(listener.id, load_balancer.account),
            **self._tls(listener),
        }
        standing = self.draft.add("aws_lb_listener", resource_name(listener.id), listener.id, body)
        self._add_certificates(listener, standing)
        return standing

    def _tls(self, listener: Listener) -> dict[str, Any]:
        """Versions, ciphers and the certificate for clients that ask for no other's name."""
        if not listener.speaks_tls:
            return {}
        first = self.certificates.certificate(default_first(listener)[0])
        return {"ssl_policy": ssl_policy(listener), "certificate_arn": first["arn"]}

    def _add_certificates(self, listener: Listener, standing: Resource) -> None:
        """Those that stand beside the first one."""
        for certificate_id in default_first(listener)[1:]:
            more = {
                "listener_arn": standing["arn"],
                "certificate_arn": self.certificates.certificate(certificate_id)["arn"],
            }
            name = resource_name(listener.id, certificate_id)
            self.draft.add("aws_lb_listener_certificate", name, certificate_id, more)

    def _add_passage(self, load_balancer: LoadBalancer, listener: Listener, alb: Resource, standing: Resource) -> None:
        """The port of the NLB that leads to the same port of the ALB, which must listen before it can be a target."""
        is_https = listener.protocol is Protocol.HTTPS
        name, vpc = resource_name(listener.id, "passage"), self.snapshot.network.vpc
        group = self.draft.add("aws_lb_target_group", name, listener.id, {
            **renewed_name(self.snapshot.id, listener.id, "alb", forced_by=(vpc, listener.port), longest=NAME),
            "target_type": "alb",
            "port": listener.port,
            "protocol": "TCP",
            "vpc_id": vpc,
            "health_check": [{
                "enabled": True, "protocol": "HTTPS" if is_https else "HTTP", "path": "/", "matcher": "200-499",
            }],
            "tags": tags(listener.id, load_balancer.account),
        })  # fmt: skip
        self.draft.add("aws_lb_target_group_attachment", name, listener.id, {
            "target_group_arn": group["arn"],
            "target_id": alb["arn"],
            "port": listener.port,
            "depends_on": [standing.address],
        })  # fmt: skip
        self._listen(listener, load_balancer.account, self._fronts[str(listener.address)], group, name)

    def _add_tcp(self, load_balancer: LoadBalancer, listener: Listener, security: Resource) -> None:
        pool = self.pools[str(listener.default_pool_id)]
        backend = home_of(pool)
        nlb, user = self._network_balancer(load_balancer, listener, security)
        group = self.groups.group(pool, backend, user)
        standing = self._listen(
            listener, load_balancer.account, nlb, group, resource_name(listener.id), self._of_connections(listener)
        )
        self._add_certificates(listener, standing)
        has_http = any(each.protocol is not Protocol.TCP for each in load_balancer.listeners)
        self._reach(f"{load_balancer.id}-tcp" if has_http else load_balancer.id, listener, nlb)

    def _network_balancer(
        self, load_balancer: LoadBalancer, listener: Listener, security: Resource
    ) -> tuple[Resource, str]:
        """The NLB of a tcp listener and the word for it: that of its Elastic IPs, or the load balancer's own."""
        if self.kind_of(listener) is AddressKind.ELASTIC:
            return self._fronts[str(listener.address)], str(listener.address)
        user = f"{load_balancer.id}-tcp"
        if user not in self._fronts:
            body = {
                **self._network_body(user, load_balancer.id, load_balancer.account, [security]),
                "subnets": sorted(set(self.snapshot.network.subnets)),
            }
            self._fronts[user] = self.draft.add("aws_lb", resource_name(user), load_balancer.id, body)
        return self._fronts[user], user

    def _of_connections(self, listener: Listener) -> dict[str, Any]:
        """What a listener of an NLB says of TLS."""
        if not listener.ends_tls:
            return {}
        policy = alpn_policy(listener)
        return {"protocol": "TLS", **self._tls(listener), **({"alpn_policy": policy} if policy else {})}

    def _listen(
        self,
        listener: Listener,
        account: str,
        nlb: Resource,
        group: Resource,
        name: str,
        tls: Mapping[str, Any] | None = None,
    ) -> Resource:
        return self.draft.add("aws_lb_listener", name, listener.id, {
            "load_balancer_arn": nlb["arn"],
            "port": listener.port,
            "protocol": "TCP",
            "default_action": [{"type": "forward", "target_group_arn": group["arn"]}],
            "tags": tags(listener.id, account),
            **(tls or {}),
        })  # fmt: skip

    def _network_body(self, name: str, owner: str, account: str, security: Sequence[Resource]) -> dict[str, Any]:
        return {
            "name": cloud_name(self.snapshot.id, name, longest=NAME),
            "load_balancer_type": "network",
            "internal": False,
            "security_groups": [each["id"] for each in security],
            "enable_cross_zone_load_balancing": True,
            "tags": tags(owner, account),
            **self._address_type(is_internal=False),
            **self._logs(name),
            **_moves_with(security),
        }

    def _address_type(self, *, is_internal: bool) -> dict[str, Any]:
        """Both versions where clients of both may connect; what stands inside has the fourth alone."""
        has_v6 = any(":" in network for network in self.snapshot.network.client_networks)
        return {"ip_address_type": "dualstack" if has_v6 and not is_internal else "ipv4"}

    def _logs(self, prefix: str) -> dict[str, Any]:
        bucket = self.snapshot.network.log_bucket
        return {"access_logs": [{"bucket": bucket, "prefix": prefix, "enabled": True}]} if bucket else {}


def _moves_with(security: Sequence[Resource]) -> dict[str, Any]:
    """A load balancer stays in its VPC for ever: in another one it is made anew, like its security groups."""
    return {"lifecycle": {"replace_triggered_by": [f"{each.address}.vpc_id" for each in security]}}
