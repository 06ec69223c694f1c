"""Capacity tests that were stored with `http2`, which load speaks no more, speak `http1`."""

from __future__ import annotations

from typing import Any

from django.db import migrations


def forwards(apps: Any, _editor: Any) -> None:
    """Change the protocol of each stored test that has the old one."""
    tests = apps.get_model("definitions", "CapacityTest").objects
    for test in tests.filter(load__protocol="http2").iterator(1000):
        tests.filter(pk=test.pk).update(load=test.load | {"protocol": "http1"})


class Migration(migrations.Migration):
    dependencies = (("definitions", "0003_objective_words"),)
    operations = (migrations.RunPython(forwards, migrations.RunPython.noop),)
