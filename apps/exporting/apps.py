"""Django's registration of the app "exporting"."""

from __future__ import annotations

from django.apps import AppConfig


class ExportingConfig(AppConfig):
    """Exports, and what is published in an etcd."""

    name = "apps.exporting"
    label = "exporting"
