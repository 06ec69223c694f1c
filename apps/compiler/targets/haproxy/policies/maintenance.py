"""A page instead of the service, for everybody but the networks that may still pass."""

from __future__ import annotations

from apps.compiler.model.policy import Maintenance
from apps.compiler.policies import MAINTENANCE_BODY, MAINTENANCE_STATUS, MAINTENANCE_TYPE
from apps.compiler.targets.haproxy.policies.lookup import add_mark
from apps.compiler.targets.haproxy.writer import Argument, Opaque, Section, Value


def add(section: Section, when: tuple[str, ...], said: Maintenance) -> None:
    """Who may pass is marked first."""
    if not said.enabled:
        return
    allowed = said.allow or ()
    add_mark(section, "txn.passes", allowed, when)
    answer: list[Argument] = ["return", "status", Value(str(said.status or MAINTENANCE_STATUS))]
    answer += ["content-type", Value(said.content_type or MAINTENANCE_TYPE)]
    answer += ["string", Opaque(said.body or MAINTENANCE_BODY)]
    if said.retry_after_s is not None:
        answer += ["hdr", "retry-after", Value(str(said.retry_after_s))]
    passes = ("!", "{", "var(txn.passes)", "-m", "bool", "}") if allowed else ()
    section.add("http-request", *answer, "if", *when, *passes)
