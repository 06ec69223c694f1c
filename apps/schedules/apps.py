"""Django's registration of the app "schedules"."""

from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    """Registers apps.schedules."""

    name = "apps.schedules"
    label = "schedules"

    def ready(self) -> None:
        """Metrics of runs stand beside those of nodes."""
        from apps.observe.ports import METRICS
        from apps.schedules.metrics import families

        METRICS[self.label] = families
