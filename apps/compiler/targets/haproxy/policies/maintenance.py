"""A page instead of the service, for everybody but the networks that may still pass."""

from __future__ import annotations

from apps.compiler.model.policy import Maintenance
from apps.compiler.model.shared import Listener
from apps.compiler.policies import MAINTENANCE_BODY, MAINTENANCE_STATUS, MAINTENANCE_TYPE
from apps.compiler.targets.haproxy.writer import Argument, Opaque, Section, Value

# HAProxy takes 64 words a line.
_NETWORKS_PER_LINE = 40


def add(section: Section, listener: Listener, when: tuple[str, ...], said: Maintenance) -> None:
    """Who may pass is marked first, forty networks a line."""
    del listener
    if not said.enabled:
        return
    allowed = said.allow or ()
    for start in range(0, len(allowed), _NETWORKS_PER_LINE):
        networks = map(Value, allowed[start : start + _NETWORKS_PER_LINE])
        section.add("http-request", "set-var(txn.passes)", "bool(true)", "if", *when, "{", "src", *networks, "}")
    answer: list[Argument] = ["return", "status", Value(str(said.status or MAINTENANCE_STATUS))]
    answer += ["content-type", Value(said.content_type or MAINTENANCE_TYPE)]
    answer += ["string", Opaque(said.body or MAINTENANCE_BODY)]
    if said.retry_after_s is not None:
        answer += ["hdr", "retry-after", Value(str(said.retry_after_s))]
    passes = ("!", "{", "var(txn.passes)", "-m", "bool", "}") if allowed else ()
    section.add("http-request", *answer, "if", *when, *passes)
