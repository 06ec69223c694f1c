"""The share of failed requests is `error_rate`; stored plans and results use the names of the API."""

from __future__ import annotations

from typing import Any

from django.db import migrations

NEW = {"below_ms": "max_latency_ms", "errors_below": "max_error_rate", "error_share": "error_rate"}
OLD = {new: old for old, new in NEW.items()}


def renamed(value: Any, names: dict[str, str]) -> Any:
    """The document with its keys renamed, however deep; `field` of a comparison names one of them."""
    if isinstance(value, list):
        return [renamed(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    found = {names.get(key, key): renamed(each, names) for key, each in value.items()}
    if isinstance(found.get("field"), str):
        found["field"] = names.get(found["field"], found["field"])
    return found


def _rename(apps: Any, names: dict[str, str]) -> None:
    runs = apps.get_model("capacity", "Run").objects
    for run in runs.only("plan", "result").iterator(500):
        runs.filter(pk=run.pk).update(plan=renamed(run.plan, names), result=renamed(run.result, names))
    comparisons = apps.get_model("capacity", "Comparison").objects
    for row in comparisons.exclude(result=None).iterator(500):
        comparisons.filter(pk=row.pk).update(result=renamed(row.result, names))


def forwards(apps: Any, _editor: Any) -> None:
    """Rename the keys of stored plans and results."""
    _rename(apps, NEW)


def backwards(apps: Any, _editor: Any) -> None:
    """Give the keys their former names."""
    _rename(apps, OLD)


class Migration(migrations.Migration):
    dependencies = (("capacity", "0001_initial"),)
    operations = (
        migrations.RenameField(model_name="step", old_name="error_share", new_name="error_rate"),
        migrations.RunPython(forwards, backwards),
    )
