"""What it cannot do once a whole stack is looked at for AWS: networks, addresses, groups, quotas, records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from apps.compiler.model.shared import Listener, LoadBalancer, Protocol, Route
from apps.compiler.model.stack import AddressKind, Cloud, CloudAddress, CloudPool, CloudZone, RecordType, StackSnapshot
from apps.compiler.portability.incompatibilities import Incompatibility, Target, lossy, refused
from apps.compiler.targets.terraform.aws import limits
from apps.compiler.targets.terraform.aws.listener_rules.rules import rules_of
from apps.compiler.targets.terraform.aws.listener_rules.shares import Share, shares_of_pool, shares_of_route, taking
from apps.compiler.targets.terraform.aws.timeouts import idle_timeout_s, pools_of

Pools = Mapping[str, CloudPool]


def unsupported_in_stack(snapshot: StackSnapshot) -> Iterator[Incompatibility]:
    """What needs more than one object to be seen."""
    pools = {pool.id: pool for pool in snapshot.pools}
    addresses = {address.id: address for address in snapshot.addresses}
    for address in snapshot.addresses:
        yield from _of_address(snapshot, address)
    for front in snapshot.load_balancers:
        yield from _of_network(snapshot, front)
        yield from _of_quotas(front)
        yield from _of_timeouts(front, pools)
        yield from _of_names(front)
        for listener in front.listeners:
            yield from _of_listener(listener, addresses, pools)
        for route in front.routes:
            yield from _of_groups(route, pools)
    for zone in snapshot.zones:
        yield from _of_records(zone, addresses)


def _of_network(snapshot: StackSnapshot, front: LoadBalancer) -> Iterator[Incompatibility]:
    needed = limits.SUBNETS_OF_ALB if _speaks_http(front) else 1
    if not snapshot.network.vpc or len(set(snapshot.network.subnets)) < needed:
        word = "two subnets in different zones" if needed > 1 else "a subnet"
        yield refused(
            Target.AWS, front, "network", "stacks",
            f"Stack {snapshot.label} has no VPC with {word}.", "Add them to the stack's network.",
        )  # fmt: skip


def _of_names(front: LoadBalancer) -> Iterator[Incompatibility]:
    """An ALB and an NLB have names of their own; static IPs are where they meet."""
    without = {each.protocol is Protocol.TCP for each in front.listeners if each.address is None}
    if len(without) > 1:
        yield lossy(
            Target.AWS, front, "two_names", "listeners.static_ip",
            "Without a static IP, http and tcp listeners have different DNS names.",
            "Give both the same static IP, or have tcp clients use the name of the NLB.",
        )  # fmt: skip


def _speaks_http(front: LoadBalancer) -> bool:
    return any(each.protocol is not Protocol.TCP for each in front.listeners)


def _of_quotas(front: LoadBalancer) -> Iterator[Incompatibility]:
    """AWS raises these on request, so they are said and not enforced."""
    http = [each for each in front.listeners if each.protocol is not Protocol.TCP]
    count = sum(len(rules_of(front, each.protocol)) for each in http)
    if count > limits.RULES:
        yield lossy(
            Target.AWS, front, "rules_quota", "routes",
            f"This load balancer needs {count} rules; AWS allows {limits.RULES} until a higher quota is granted.",
            "Ask AWS for a higher quota, or only redirect to https from http.",
        )  # fmt: skip
    more = sum(len(each.certificate_ids[1:]) for each in http)
    if more > limits.CERTIFICATES:
        yield lossy(
            Target.AWS, front, "certificates_quota", "listeners.certificates",
            f"This load balancer needs {more} certificates in addition to the first ones; AWS allows "
            f"{limits.CERTIFICATES} until a higher quota is granted.",
            "Ask AWS for a higher quota, or use certificates that cover several names.",
        )  # fmt: skip


def _of_timeouts(front: LoadBalancer, pools: Pools) -> Iterator[Incompatibility]:
    """An ALB has one idle timeout for all of its pools."""
    seconds = idle_timeout_s(front, pools)
    for pool_id in sorted(pools_of(front) & pools.keys()):
        if pools[pool_id].server_timeout_ms != seconds * 1000 and _speaks_http(front):
            yield lossy(
                Target.AWS, pools[pool_id], "server_timeout", "server_timeout_ms",
                f"An ALB has one timeout for all pools of {front.label}: {seconds} s.",
                "Give these pools the same server timeout, in whole seconds up to 4000.",
            )  # fmt: skip


def _of_listener(listener: Listener, addresses: Mapping[str, CloudAddress], pools: Pools) -> Iterator[Incompatibility]:
    if listener.address is not None and listener.address not in addresses:
        yield refused(
            Target.AWS, listener, "unknown_address", "static_ip",
            "The listener's static IP does not belong to this stack.", "Choose one of this stack, or none.",
        )  # fmt: skip
    pool = pools.get(listener.default_pool_id or "")
    if pool is None:
        return
    shares = shares_of_pool(pool)
    if listener.protocol is not Protocol.TCP:
        yield from _of_shares(listener, "default_pool", shares)
    elif not shares:
        yield refused(
            Target.AWS, listener, "no_backends", "default_pool",
            f"An NLB listener forwards to a target group, and {pool.label} has no backend in any region.",
            "Add a backend to the pool.",
        )  # fmt: skip
    elif len(taking(shares)) > 1:
        yield lossy(
            Target.AWS, pool, "regions_of_tcp", "backends",
            "An NLB sends all connections of a listener to one region: the one with the largest share.",
            "Serve tcp in several regions from fleets, or create a listener for each region.",
        )  # fmt: skip


def _of_groups(route: Route, pools: Pools) -> Iterator[Incompatibility]:
    if route.pools and all(share.pool_id in pools for share in route.pools):
        yield from _of_shares(route, "pools", shares_of_route(route, pools))


def _of_shares(thing: Route | Listener, field: str, shares: Sequence[Share]) -> Iterator[Incompatibility]:
    most, now = limits.TARGET_GROUPS_PER_ACTION, len(taking(shares))
    if now > most:
        yield refused(
            Target.AWS, thing, "too_many_groups", field,
            f"An ALB splits traffic among at most {most} target groups; these pools need {now} in their regions.",
            "Use fewer pools, or pools in fewer regions.",
        )  # fmt: skip
    elif len(shares) > most:
        yield lossy(
            Target.AWS, thing, "no_standby", field,
            f"An ALB splits traffic among at most {most} target groups; these pools need {len(shares)} in their "
            "regions. Regions without a share are left out, and moving traffic to one changes more than weights.",
            "Use fewer pools, or pools in fewer regions.",
        )  # fmt: skip


def _of_address(snapshot: StackSnapshot, address: CloudAddress) -> Iterator[Incompatibility]:
    if address.kind not in (AddressKind.ELASTIC, AddressKind.ACCELERATOR):
        yield refused(
            Target.AWS, address, "address_kind", "kind",
            f"{Cloud.AWS.upper()} does not offer static IPs of kind {address.kind}.", "Use elastic or accelerator.",
        )  # fmt: skip
    if address.kind is AddressKind.ELASTIC and not snapshot.network.subnets:
        yield refused(
            Target.AWS, address, "network", "stack",
            f"Stack {snapshot.label} has no subnets for Elastic IPs.", "Add them to its network.",
        )  # fmt: skip


def _of_records(zone: CloudZone, addresses: Mapping[str, CloudAddress]) -> Iterator[Incompatibility]:
    for record in zone.records:
        if record.type is RecordType.NS and record.name == "@":
            yield refused(
                Target.AWS, record, "own_name_servers", "type",
                "Route 53 manages the name servers of a zone itself.", "Remove the record.",
            )  # fmt: skip
        if record.address_id and record.address_id not in addresses:
            yield refused(
                Target.AWS, record, "unknown_address", "static_ip",
                "The record's static IP does not belong to this stack.", "Enter its addresses as values.",
            )  # fmt: skip
        elif record.address_id and record.type is not RecordType.A:
            yield refused(
                Target.AWS, record, "address_version", "type",
                "Static IPs on AWS are IPv4 addresses: only an A record can follow one.", "Use type A.",
            )  # fmt: skip
