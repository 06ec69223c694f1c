"""What a token may be narrowed to: a noun of the API, or `*` for all of them, with read or write."""

from __future__ import annotations

from collections.abc import Iterable

# The first words of paths below /api/v1/. Applies and plans are asked noun by noun for what they change.
NOUNS = (
    "accounts",
    "address-pools",
    "alert-channels",
    "alert-rules",
    "alerts",
    "audit-entries",
    "backends",
    "capacity-tests",
    "certificate-authorities",
    "certificates",
    "cloud-accounts",
    "events",
    "fleets",
    "grants",
    "hostnames",
    "incidents",
    "invitations",
    "listeners",
    "load-balancers",
    "log-forwards",
    "memberships",
    "network-lists",
    "nodes",
    "overflow",
    "plans",
    "policies",
    "pools",
    "records",
    "regions",
    "request-logs",
    "revisions",
    "rollouts",
    "routes",
    "saved-searches",
    "schedule-runs",
    "schedules",
    "servers",
    "silences",
    "stack-runs",
    "stacks",
    "static-ips",
    "status-pages",
    "tokens",
    "topics",
    "trace",
    "triggers",
    "webhooks",
    "zones",
)
VERBS = ("read", "write")
SCOPES = tuple(f"{noun}:{verb}" for noun in ("*", *NOUNS) for verb in VERBS)


def covers(own: Iterable[str], wanted: str) -> bool:
    """Whether somebody with the scopes `own` may pass `wanted` on; writing includes reading, `*` every noun."""
    noun, _, verb = wanted.partition(":")
    verbs = VERBS if verb == "read" else ("write",)
    return not {f"{one}:{each}" for one in ("*", noun) for each in verbs}.isdisjoint(own)
