"""Django's registration of the app "retries"."""

from django.apps import AppConfig


class RetriesConfig(AppConfig):
    """Registers apps.retries."""

    name = "apps.retries"
    label = "retries"
