"""Several stacks may stand in one region of a cloud account."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """No row changes."""

    dependencies = (("fleet", "0002_region_drained_at"),)

    operations = (migrations.RemoveConstraint(model_name="stack", name="one_stack_per_region"),)
