import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("status", "0001_status_pages")]

    operations = [
        migrations.CreateModel(
            name="DeletedIncident",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="alerts.alert"
                    ),
                ),
                (
                    "page",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deleted_incidents",
                        to="definitions.statuspage",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("page", "alert"), name="deleted_incident_once")],
            },
        ),
    ]
