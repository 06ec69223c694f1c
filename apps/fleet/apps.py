"""Django's registration of the app "fleet"."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    """Registers apps.fleet."""

    name = "apps.fleet"
    label = "fleet"
