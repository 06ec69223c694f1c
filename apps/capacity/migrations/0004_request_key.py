"""What makes a run happen once is the key of its request, whoever asks."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("capacity", "0003_status_and_message"),)
    operations = (migrations.RenameField(model_name="run", old_name="fire_key", new_name="request_key"),)
