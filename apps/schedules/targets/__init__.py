"""SCHEDULES, what a fire does: one literal registry of the kinds of targets."""

from apps.schedules.targets.contract import Target

TARGETS: dict[str, Target] = {}
