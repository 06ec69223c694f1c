"""Django's registration of the app "web"."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Registers apps.web."""

    name = "apps.web"
    label = "web"
