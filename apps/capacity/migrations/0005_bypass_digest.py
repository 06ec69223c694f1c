"""What nodes know a run's requests by is the digest of its bypass token."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("capacity", "0004_request_key"),)
    operations = (migrations.RenameField(model_name="run", old_name="pass_digest", new_name="bypass_digest"),)
