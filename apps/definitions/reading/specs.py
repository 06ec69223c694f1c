"""The frozen specification of every kind of object, as reading a document gives it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.definitions.shapes.base.shape import Shape


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """What a schedule does, by its kind (models.Schedule.TargetKind), as the document says it.

    webhook `{url, body}`, topic `{topic, message}`, capacity_test `{name}`, rollout `{fleet}`, change
    `{object: {kind, name, spec}, restore_after_s}`.
    """

    kind: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """When something should happen, and what; fields as in models.Schedule. None of `paused` leaves it as it is."""

    target: TargetSpec
    cron: str = ""
    every_s: int | None = None
    at: str = ""
    zone: str = "UTC"
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    window_s: int = 0
    jitter_s: int = 0
    overlap: str = "skip"
    catch_up: str = "once"
    catch_up_window_s: int = 300
    attempts: int = 3
    backoff_s: int = 5
    timeout_s: int = 30
    paused: bool | None = None


Spec = Shape | ScheduleSpec
