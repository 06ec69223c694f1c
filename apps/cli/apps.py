"""Django's registration of the app "cli"."""

from django.apps import AppConfig


class CliConfig(AppConfig):
    """Registers apps.cli."""

    name = "apps.cli"
    label = "cli"
