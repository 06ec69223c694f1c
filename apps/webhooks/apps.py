"""Django's registration of the app "webhooks"."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """Registers apps.webhooks."""

    name = "apps.webhooks"
    label = "webhooks"
