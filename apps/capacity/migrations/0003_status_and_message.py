"""A run says its phase and a message, a step its status and a message; stored results use the same names."""

from __future__ import annotations

from typing import Any

from django.db import migrations

RESULT = {"sentence": "message"}
POINT = {"verdict": "status"}
BOTTLENECK = {"word": "reason", "sentence": "message"}
COMPARISON = {"verdict": "message"}


def _keys(document: Any, names: dict[str, str], *, back: bool) -> Any:
    if not isinstance(document, dict):
        return document
    chosen = {new: old for old, new in names.items()} if back else names
    return {chosen.get(key, key): value for key, value in document.items()}


def of_run(result: Any, *, back: bool = False) -> Any:
    """The result of a run with its keys renamed; None stays None."""
    found = _keys(result, RESULT, back=back)
    if isinstance(found, dict):
        for part, names in {"knee": POINT, "bottleneck": BOTTLENECK, "since_last": RESULT, "applied": RESULT}.items():
            if part in found:
                found[part] = _keys(found[part], names, back=back)
        if "curve" in found:
            found["curve"] = [_keys(point, POINT, back=back) for point in found["curve"]]
    return found


def of_comparison(result: Any, *, back: bool = False) -> Any:
    """The result of a comparison with its keys renamed."""
    found = _keys(result, COMPARISON, back=back)
    found["differences"] = [_keys(each, RESULT, back=back) for each in found.get("differences", [])]
    return found


def _rename(apps: Any, *, back: bool) -> None:
    runs = apps.get_model("capacity", "Run").objects
    for run in runs.exclude(result=None).only("result").iterator(500):
        runs.filter(pk=run.pk).update(result=of_run(run.result, back=back))
    comparisons = apps.get_model("capacity", "Comparison").objects
    for row in comparisons.exclude(result=None).iterator(500):
        comparisons.filter(pk=row.pk).update(result=of_comparison(row.result, back=back))


def forwards(apps: Any, _editor: Any) -> None:
    """Rename the keys of stored results."""
    _rename(apps, back=False)


def backwards(apps: Any, _editor: Any) -> None:
    """Give the keys their former names."""
    _rename(apps, back=True)


class Migration(migrations.Migration):
    dependencies = (("capacity", "0002_error_rate"),)
    operations = (
        migrations.RenameField(model_name="run", old_name="doing", new_name="phase"),
        migrations.RenameField(model_name="run", old_name="why", new_name="message"),
        migrations.RenameField(model_name="step", old_name="verdict", new_name="status"),
        migrations.RenameField(model_name="step", old_name="why", new_name="message"),
        migrations.RunPython(forwards, backwards),
    )
