"""Django's registration of the app "alerts"."""

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Registers apps.alerts."""

    name = "apps.alerts"
    label = "alerts"
