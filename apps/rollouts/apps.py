"""Django's registration of the app "rollouts"."""

from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    """Registers apps.rollouts."""

    name = "apps.rollouts"
    label = "rollouts"

    def ready(self) -> None:
        """Metrics of rollouts stand beside those of nodes."""
        from apps.observe.ports import METRICS
        from apps.rollouts.metrics import families

        METRICS[self.label] = families
