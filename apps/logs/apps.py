"""Django's registration of the app "logs"."""

from django.apps import AppConfig


class LogsConfig(AppConfig):
    """Registers apps.logs."""

    name = "apps.logs"
    label = "logs"

    def ready(self) -> None:
        """Metrics of request lines stand beside those of nodes."""
        from apps.logs.metrics import families
        from apps.observe.ports import METRICS

        METRICS[self.label] = families
