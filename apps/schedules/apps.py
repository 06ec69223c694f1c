"""Django's registration of the app "schedules"."""

from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    """Registers apps.schedules."""

    name = "apps.schedules"
    label = "schedules"

    def ready(self) -> None:
        """Metrics of fires stand beside those of nodes."""
        from apps.observe.metrics import add_family
        from apps.schedules.metrics import families

        add_family(families)
