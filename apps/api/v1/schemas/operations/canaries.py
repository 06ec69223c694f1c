"""What each URL of canaries does."""

from __future__ import annotations

from dataclasses import replace

from apps.api.v1.schemas.derived import serializer_of
from apps.api.v1.schemas.nouns.progress import Canary
from apps.api.v1.schemas.operations.building import Operation, Schema, Table, detail, listing, managed, of_one
from apps.canaries.plan import CanaryPlan


def _act(summary: str, sent: Schema | None = None) -> Operation:
    found = of_one(summary, {202: Canary}, sent)
    return replace(found, tells=("Location", "Idempotency-Replayed"))


OPERATIONS: Table = {
    ("routes-canaries", "POST"): managed(_act("Begin a canary of a route", serializer_of(CanaryPlan))),
    ("canaries-list", "GET"): listing(Canary, "canaries", "account", "route", "state-word-canary"),
    ("canaries-detail", "GET"): detail(
        Canary, "a canary; `wait` returns when it holds or is over", "wait", version=False
    ),
    ("canaries-hold", "POST"): _act("Hold a canary"),
    ("canaries-resume", "POST"): _act("Resume a canary"),
    ("canaries-promote", "POST"): _act("Promote a canary"),
    ("canaries-abort", "POST"): _act("Abort a canary"),
}
