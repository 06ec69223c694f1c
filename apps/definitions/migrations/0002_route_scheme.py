"""Routes may be for one scheme; a redirect that only turns http into https, or back, becomes one."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

OTHER = {"https": "http", "http": "https"}


def narrow_redirects(apps: Any, _editor: Any) -> None:
    """On the listeners of the other scheme such a redirect leads to itself, which is refused from now on."""
    routes = apps.get_model("definitions", "Route").objects
    for route in routes.filter(action="redirect").iterator(1000):
        redirect = route.redirect or {}
        if redirect.get("scheme") in OTHER and not redirect.get("host") and not redirect.get("path"):
            routes.filter(pk=route.pk).update(scheme=OTHER[redirect["scheme"]])


class Migration(migrations.Migration):
    dependencies = (("definitions", "0001_initial"),)
    operations = (
        migrations.AddField(
            model_name="route", name="scheme", field=models.CharField(blank=True, default="", max_length=5)
        ),
        migrations.RunPython(narrow_redirects, migrations.RunPython.noop),
    )
