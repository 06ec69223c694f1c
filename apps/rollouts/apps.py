"""Django's registration of the app "rollouts"."""

from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    """Registers apps.rollouts."""

    name = "apps.rollouts"
    label = "rollouts"

    def ready(self) -> None:
        """Metrics of rollouts stand beside those of nodes."""
        from apps.observe.metrics import add_family
        from apps.rollouts.metrics import families

        add_family(families)
