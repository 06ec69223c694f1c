"""One execution of a schedule is a schedule run: the table, its names, and the scopes and event types that say so."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

INDEXES = ("waiting", "open", "running", "of_trigger", "bad")
NOUNS = {"fires": "schedule-runs"}
EVENTS = {"fire": "schedule_run"}
KEYS = {"fire-": "schedule-run-"}


def _renamed(values: list[str], nouns: dict[str, str], mark: str) -> list[str]:
    """`fires:read` → `schedule-runs:read`; what has another noun stays."""
    parts = [value.partition(mark) for value in values]
    return [nouns.get(noun, noun) + rest + verb for noun, rest, verb in parts]


def _rename(apps: Any, *, back: bool) -> None:
    def way(names: dict[str, str]) -> dict[str, str]:
        return {new: old for old, new in names.items()} if back else names

    for model, field, names, mark in (
        (apps.get_model("accounts", "ApiToken"), "scopes", way(NOUNS), ":"),
        (apps.get_model("webhooks", "Webhook"), "event_types", way(EVENTS), "."),
    ):
        for row in model.objects.only(field).iterator(500):
            values = getattr(row, field)
            if (found := _renamed(values, names, mark)) != values:
                model.objects.filter(pk=row.pk).update(**{field: found})
    runs = apps.get_model("capacity", "Run").objects
    for old, new in way(KEYS).items():
        for run in runs.filter(request_key__startswith=old).only("request_key").iterator(500):
            runs.filter(pk=run.pk).update(request_key=run.request_key.replace(old, new, 1))


def forwards(apps: Any, _editor: Any) -> None:
    """Rename what tokens may do, what webhooks ask for, and the keys under which schedules asked for capacity runs."""
    _rename(apps, back=False)


def backwards(apps: Any, _editor: Any) -> None:
    """Give all of them their former names."""
    _rename(apps, back=True)


class Migration(migrations.Migration):
    dependencies = (
        ("schedules", "0002_message"),
        ("accounts", "0003_last_check_message"),
        ("webhooks", "0002_disabled_reason"),
        ("capacity", "0004_request_key"),
    )
    operations = (
        migrations.RemoveConstraint(model_name="fire", name="one_fire_per_instant"),
        migrations.RemoveConstraint(model_name="fire", name="one_fire_per_delivery"),
        migrations.RenameModel(old_name="Fire", new_name="ScheduleRun"),
        *(
            migrations.RenameIndex("schedulerun", f"schedule_runs_{name}", old_name=f"fires_{name}")
            for name in INDEXES
        ),
        migrations.RenameIndex(
            "schedulerun", "schedules_s_schedul_b01853_idx", old_name="schedules_f_schedul_309515_idx"
        ),
        migrations.AlterField(
            model_name="schedulerun",
            name="schedule",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="definitions.schedule"
            ),
        ),
        migrations.AlterField(
            model_name="schedulerun",
            name="trigger",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="runs",
                to="schedules.trigger",
            ),
        ),
        migrations.AddConstraint(
            model_name="schedulerun",
            constraint=models.UniqueConstraint(
                fields=("schedule", "scheduled_at"), name="one_schedule_run_per_instant"
            ),
        ),
        migrations.AddConstraint(
            model_name="schedulerun",
            constraint=models.UniqueConstraint(
                condition=~Q(delivery=""), fields=("trigger", "delivery"), name="one_schedule_run_per_delivery"
            ),
        ),
        migrations.RunPython(forwards, backwards),
    )
