"""How changes reach the nodes of a fleet, as its settings say: in which waves, and after which other fleets."""

from __future__ import annotations

from dataclasses import fields

from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.platform.rollout_settings import RolloutSettingsSpec
from apps.fleet.models import Fleet


def settings_of(fleet: Fleet) -> RolloutSettingsSpec:
    """By default all nodes at once, in the first stage. What a later version stored besides is left."""
    stored = fleet.rollout_settings or {}
    known = {field.name for field in fields(RolloutSettingsSpec)}
    return read_or_raise(RolloutSettingsSpec, {name: value for name, value in stored.items() if name in known})


def of_earlier_stages(fleet: Fleet) -> list[Fleet]:
    """The fleets of the account that get a change before this one."""
    stage = settings_of(fleet).stage
    return [each for each in Fleet.objects.filter(account=fleet.account_id) if settings_of(each).stage < stage]


def of_later_stages(fleet: Fleet) -> list[Fleet]:
    """The fleets of the account that get a change after this one."""
    stage = settings_of(fleet).stage
    return [each for each in Fleet.objects.filter(account=fleet.account_id) if settings_of(each).stage > stage]
