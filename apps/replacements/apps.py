"""Django's registration of the app "replacements"."""

from django.apps import AppConfig


class ReplacementsConfig(AppConfig):
    """Registers apps.replacements."""

    name = "apps.replacements"
    label = "replacements"
