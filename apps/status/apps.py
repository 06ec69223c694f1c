"""Django's registration of the app "status"."""

from django.apps import AppConfig


class StatusConfig(AppConfig):
    """Registers apps.status."""

    name = "apps.status"
    label = "status"
