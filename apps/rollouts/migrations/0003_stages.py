from django.db import migrations, models
from django.db.models import F


def prove_what_runs(apps, schema_editor):
    """Fleets that run what is desired have proven it: nobody waits for them after an upgrade."""
    syncs = apps.get_model("rollouts", "FleetSync").objects.filter(compile_error="", held_at=None)
    there = syncs.filter(wanted__digest=F("compiled_digest"))
    there.update(proven_generation=F("compiled_generation"))


class Migration(migrations.Migration):

    dependencies = [
        ('rollouts', '0002_rollout_waves'),
    ]

    operations = [
        migrations.AddField(
            model_name='fleetsync',
            name='proven_generation',
            field=models.PositiveBigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='quarantine',
            name='generation',
            field=models.PositiveBigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='rollout',
            name='awaits',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.RunPython(prove_what_runs, migrations.RunPython.noop),
    ]
