"""What each URL of replacements of servers does."""

from __future__ import annotations

from dataclasses import replace

from apps.api.v1.schemas.derived import serializer_of
from apps.api.v1.schemas.nouns.progress import ContinueReplacement, Replacement
from apps.api.v1.schemas.operations.building import Operation, Schema, Table, detail, listing, managed, of_one
from apps.replacements.plan import ReplacementPlan


def _act(summary: str, sent: Schema | None = None) -> Operation:
    found = of_one(summary, {202: Replacement}, sent)
    return replace(found, tells=("Location", "Idempotency-Replayed"))


OPERATIONS: Table = {
    ("pools-replacements", "POST"): managed(_act("Replace servers of a pool", serializer_of(ReplacementPlan))),
    ("replacements-list", "GET"): listing(
        Replacement, "replacements of servers", "account", "pool", "state-word-replacement"
    ),
    ("replacements-detail", "GET"): detail(
        Replacement, "a replacement; `wait` returns when a batch is handed over, or it stops", "wait", version=False
    ),
    ("replacements-continue", "POST"): _act("Say that a batch is replaced", ContinueReplacement),
    ("replacements-stop", "POST"): _act("Stop a replacement"),
    ("replacements-resume", "POST"): _act("Resume a replacement"),
    ("replacements-reverse", "POST"): _act("Turn a replacement back"),
    ("replacements-end", "POST"): _act("End a replacement"),
}
