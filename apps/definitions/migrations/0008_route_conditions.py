"""Routes may ask for query parameters, cookies and client networks, and for a path that a pattern matches."""

from __future__ import annotations

from django.db import migrations, models

from apps.compiler.model.shared import PathKind


class Migration(migrations.Migration):
    dependencies = (("definitions", "0007_servers_of_pools"),)
    operations = (
        *(
            migrations.AddField(model_name="route", name=name, field=models.JSONField(default=list))
            for name in ("client_networks", "cookies", "query")
        ),
        migrations.AlterField(
            model_name="route",
            name="path_kind",
            field=models.CharField(
                choices=[("exact", "exact"), ("prefix", "prefix"), ("regex", "regex")],
                default=PathKind.PREFIX,
                max_length=6,
            ),
        ),
    )
