"""What somebody added by hand to what a stack made."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Nothing is known until the next look for drift."""

    dependencies = (("stacks", "0001_initial"),)

    operations = (
        migrations.AddField(model_name="stacksync", name="added_by_hand", field=models.JSONField(default=list)),
    )
