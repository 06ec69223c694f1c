"""Django's registration of the app "core"."""

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """Registers apps.core."""

    name = "apps.core"
    label = "core"
