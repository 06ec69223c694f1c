"""Django's registration of the app "observe"."""

from django.apps import AppConfig


class ObserveConfig(AppConfig):
    """Registers apps.observe."""

    name = "apps.observe"
    label = "observe"
