"""Django's registration of the app "capacity"."""

from django.apps import AppConfig


class CapacityConfig(AppConfig):
    """Registers apps.capacity."""

    name = "apps.capacity"
    label = "capacity"
