"""The objective of a capacity test says `max_latency_ms` and `max_error_rate`."""

from __future__ import annotations

from typing import Any

from django.db import migrations

NEW = {"below_ms": "max_latency_ms", "errors_below": "max_error_rate"}
OLD = {new: old for old, new in NEW.items()}


def _rename(apps: Any, names: dict[str, str]) -> None:
    tests = apps.get_model("definitions", "CapacityTest").objects
    for test in tests.iterator(1000):
        objective = {names.get(key, key): value for key, value in test.objective.items()}
        if objective != test.objective:
            tests.filter(pk=test.pk).update(objective=objective)


def forwards(apps: Any, _editor: Any) -> None:
    """Rename the keys of each stored objective."""
    _rename(apps, NEW)


def backwards(apps: Any, _editor: Any) -> None:
    """Give the keys their former names."""
    _rename(apps, OLD)


class Migration(migrations.Migration):
    dependencies = (("definitions", "0002_route_scheme"),)
    operations = (migrations.RunPython(forwards, backwards),)
