"""What came of an occurrence is its message."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("schedules", "0001_initial"),)
    operations = (migrations.RenameField(model_name="fire", old_name="said", new_name="message"),)
