"""Django's registration of the app "api"."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Registers apps.api."""

    name = "apps.api"
    label = "api"
