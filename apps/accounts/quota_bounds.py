"""What every quota is where nobody has said anything else, and what may be written as it; pure."""

from __future__ import annotations

DEFAULTS = {
    "routes": 1000,
    "policies": 50,
    "network_lists": 20,
    # URLs from which keys of tokens are fetched.
    "key_sets": 10,
    "pools": 200,
    # Of all pools together; each costs a worker half a millisecond in every write of its pool.
    "servers": 5000,
    "hostnames": 200,
    "certificates": 100,
    "tokens": 50,
    "people": 50,
    "webhooks": 10,
    "requests_per_minute": 1200,
    "schedules": 100,
    "triggers": 50,
    "alert_rules": 50,
    "alert_channels": 10,
    "status_pages": 5,
    "records": 1000,
    # Of pools and routes together.
    "objectives": 100,
    # What the request log of an account may take; then its oldest hours go.
    "log_megabytes": 5000,
    # Addresses are few, and operators give them.
    "static_ips": 10,
    # How much of what a node can have at once (connections, requests in flight) its pools get, all together.
    "node_share_percent": 25,
    # How many requests (tcp: new connections) per second a node takes for its pools, all together.
    "node_rps": 5000,
    # What capacity tests may do; without a word from an operator: nothing.
    "capacity_tests": 20,
    "test_runs_at_once": 0,
    "test_rate": 0,
    "test_connections": 0,
    "test_seconds": 0,
}
HIGHEST = 1_000_000
_BOUNDS = {"node_share_percent": (1, 100), "node_rps": (1, HIGHEST)}


def bounds(name: str) -> tuple[int, int]:
    """The least and the most that may be written as this quota."""
    return _BOUNDS.get(name, (0, HIGHEST))
