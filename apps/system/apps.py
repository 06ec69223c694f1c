"""Django's registration of the app "system"."""

from django.apps import AppConfig


class SystemConfig(AppConfig):
    """Registers apps.system."""

    name = "apps.system"
    label = "system"

    def ready(self) -> None:
        """Metrics of Spillway itself stand beside those of nodes."""
        from apps.observe.ports import METRICS
        from apps.system.metrics import families

        METRICS[self.label] = families
