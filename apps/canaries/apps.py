"""Django's registration of the app "canaries"."""

from django.apps import AppConfig


class CanariesConfig(AppConfig):
    """Registers apps.canaries."""

    name = "apps.canaries"
    label = "canaries"
