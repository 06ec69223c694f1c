"""Times for AWS: whole seconds, within bounds, and one idle timeout for a whole load balancer."""

from __future__ import annotations

from collections.abc import Mapping

from apps.compiler.model.shared import HealthCheck, LoadBalancer, Protocol
from apps.compiler.model.stack import CloudPool
from apps.compiler.targets.terraform.aws import limits

_IDLE_MS = 60_000


def seconds(milliseconds: int) -> int:
    """Rounded up."""
    return -(-milliseconds // 1000)


def check_times(check: HealthCheck) -> tuple[int, int, int, int]:
    """Seconds between checks and for an answer, good and bad ones in a row, as near as a target group comes."""
    timeout = _within(seconds(check.timeout_ms), limits.CHECK_TIMEOUT_S)
    interval = _within(max(seconds(check.interval_ms), timeout + 1), limits.CHECK_INTERVAL_S)
    return interval, timeout, _within(check.rise, limits.CHECK_COUNT), _within(check.fall, limits.CHECK_COUNT)


def idle_timeout_s(load_balancer: LoadBalancer, pools: Mapping[str, CloudPool]) -> int:
    """How long an ALB waits for an answer: as long as the most patient of its pools."""
    used = (pools[pool_id].server_timeout_ms for pool_id in pools_of(load_balancer) if pool_id in pools)
    return _within(seconds(max(used, default=_IDLE_MS)), limits.IDLE_TIMEOUT_S)


def pools_of(load_balancer: LoadBalancer) -> set[str]:
    """Ids of the pools that its routes and listeners of http name."""
    named = {share.pool_id for route in load_balancer.routes for share in route.pools}
    http = (each for each in load_balancer.listeners if each.protocol is not Protocol.TCP)
    return named | {each.default_pool_id for each in http if each.default_pool_id}


def _within(value: int, bounds: tuple[int, int]) -> int:
    return max(bounds[0], min(value, bounds[1]))
