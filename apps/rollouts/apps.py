"""Django's registration of the app "rollouts"."""

from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    """Registers apps.rollouts."""

    name = "apps.rollouts"
    label = "rollouts"
