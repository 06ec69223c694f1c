"""Entries of the audit log as events: what they are called, who asked for them, what is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from apps.audit.exporting import fields_of
from apps.audit.models import Entry
from apps.core.errors import FieldError

ALL = "*"
TEST = "webhook.test"
MOST_TYPES = 50
MOST_BYTES = 256 * 1024

# Events whose names say more than kind and action do.
_NAMED = {("Backend", "update"): "limit.changed", ("Rollout", "finish"): "rollout.finished"}
# What was done, as events and people say it.
DONE = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "drain": "drained",
    "undrain": "undrained",
    "roll_back": "rolled_back",
    "resume": "resumed",
    "pause": "paused",
    "miss": "missed",
    "retry": "retried",
    "give_up": "given_up",
    "push_again": "pushed_again",
    "accept": "accepted",
    "acknowledge": "acknowledged",
    "rotate": "rotated",
    "call": "called",
    "disable": "disabled",
    "move": "moved",
    "verify": "verified",
    "lose_verification": "verification_lost",
    "claim": "claimed",
    "release": "released",
    "end_cooldown": "cooldown_ended",
    "quarantine": "quarantined",
    "finish": "finished",
    "take_back": "pool_taken_back",
    "share_again": "pool_shared_again",
    "request": "requested",
    "compare": "requested",
    "approve": "approved",
    "stop": "stopped",
    "hand_over": "handed_over",
    "continue": "continued",
    "reverse": "reversed",
    "hold": "held",
    "promote": "promoted",
    "abort": "aborted",
    "end": "ended",
    "impersonate": "impersonated",
    "stop_impersonating": "impersonation_stopped",
    "sign_in": "signed_in",
    "sign_out": "signed_out",
    "end_sessions": "sessions_ended",
    "change_password": "password_changed",
    "add_second_factor": "second_factor_added",
    "remove_second_factor": "second_factor_removed",
    "fail_second_factor": "second_factor_failed",
    "renew_recovery_codes": "recovery_codes_renewed",
    "connect_provider": "provider_connected",
    "disconnect_provider": "provider_disconnected",
}
_USUAL = ("created", "updated", "deleted")
# What can be asked for: nouns and their verbs.
CATALOGUE: dict[str, tuple[str, ...]] = {
    "route": (*_USUAL, "quarantined", "pool_taken_back", "pool_shared_again"),
    "pool": (*_USUAL, "quarantined"),
    "server": (*_USUAL, "quarantined"),
    "limit": ("changed",),
    "certificate": (*_USUAL, "quarantined", "rotated"),
    "certificate_authority": _USUAL,
    "hostname": ("claimed", "verified", "verification_lost", "released", "cooldown_ended"),
    "rollout": ("finished",),
    "load_balancer": _USUAL,
    "region": (*_USUAL, "drained", "undrained"),
    "fleet": (*_USUAL, "rolled_back", "resumed", "pushed_again"),
    "node": _USUAL,
    "cloud_account": _USUAL,
    "stack": _USUAL,
    "address_pool": _USUAL,
    "static_ip": (*_USUAL, "moved", "released"),
    "zone": _USUAL,
    "record": _USUAL,
    "account": (*_USUAL, "impersonated", "impersonation_stopped"),
    "grant": _USUAL,
    "token": ("created", "deleted"),
    "invitation": ("created", "deleted"),
    "membership": (*_USUAL, "accepted"),
    "person": (
        *("created", "signed_in", "signed_out", "sessions_ended", "password_changed"),
        *("provider_connected", "provider_disconnected"),
        *("second_factor_added", "second_factor_removed", "second_factor_failed", "recovery_codes_renewed"),
    ),
    "webhook": (*_USUAL, "rotated", "disabled"),
    "alert": ("acknowledged",),
    "alert_rule": _USUAL,
    "alert_channel": _USUAL,
    "silence": ("created", "deleted"),
    "saved_search": ("created", "deleted"),
    "status_page": _USUAL,
    "incident": _USUAL,
    "schedule": (*_USUAL, "missed", "paused", "resumed", "run", "retried", "rotated"),
    "schedule_run": ("given_up",),
    "trigger": (*_USUAL, "rotated", "called"),
    "capacity_test": _USUAL,
    "run": ("requested", "approved", "stopped", "finished"),
    "comparison": ("requested",),
    "replacement": ("requested", "handed_over", "continued", "stopped", "resumed", "reversed", "finished"),
    "canary": ("requested", "held", "resumed", "promoted", "aborted", "ended"),
    "blackout": ("created", "deleted"),
}


def type_of(entry: Entry) -> str:
    """What an entry is called as an event: `route.updated`, `limit.changed`, `rollout.finished`."""
    named = _NAMED.get((entry.object_kind, entry.action))
    if named:
        return named
    noun = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", entry.object_kind).lower()
    return f"{noun}.{DONE.get(entry.action, entry.action)}"


def wanted(patterns: Iterable[str], event: str) -> bool:
    """Whether one of `*`, `route.*` or `route.updated` asks for the event."""
    noun = event.partition(".")[0]
    return not {ALL, f"{noun}.*", event}.isdisjoint(patterns)


def read_types(values: object, pointer: str, field_errors: list[FieldError]) -> list[str]:
    """Patterns from outside; each one that could never match is an error."""
    if not isinstance(values, list) or not 0 < len(values) <= MOST_TYPES:
        field_errors.append(
            FieldError(pointer, "list", f'Write a list of 1 to {MOST_TYPES} event types; ["*"] asks for all.')
        )
        return []
    found = []
    for index, value in enumerate(values):
        if isinstance(value, str) and _exists(value):
            found.append(value)
        else:
            detail = "Use *, a noun with a star such as route.*, or one event such as route.updated."
            field_errors.append(FieldError(f"{pointer}/{index}", "choice", detail))
    return list(dict.fromkeys(found))


def _exists(pattern: str) -> bool:
    noun, _, verb = pattern.partition(".")
    return pattern == ALL or (noun in CATALOGUE and verb in (ALL, *CATALOGUE[noun]))


def body_of(entry: Entry) -> bytes:
    """What is sent: type, timestamp and the entry; documents that are too large for a message are left out."""
    data = fields_of(entry)
    body = _json(type_of(entry), data)
    if len(body) > MOST_BYTES:
        body = _json(type_of(entry), data | {"before": None, "after": None, "shortened": True})
    return body


def body_of_test(timestamp: str, name: str) -> bytes:
    """What a test sends."""
    data = {"webhook": name, "message": "A test from Spillway: nothing was changed."}
    return json.dumps({"type": TEST, "timestamp": timestamp, "data": data}).encode()


def _json(event: str, data: dict[str, object]) -> bytes:
    return json.dumps({"type": event, "timestamp": data["at"], "data": data}).encode()
