"""Django's registration of the app "definitions"."""

from django.apps import AppConfig


class DefinitionsConfig(AppConfig):
    """Registers apps.definitions."""

    name = "apps.definitions"
    label = "definitions"
