"""Django's registration of the app "logs"."""

from django.apps import AppConfig
from django.conf import settings


class LogsConfig(AppConfig):
    """Registers apps.logs."""

    name = "apps.logs"
    label = "logs"

    def ready(self) -> None:
        """Metrics of request lines stand beside those of nodes; a console has few threads."""
        from apps.drivers.logs.registry import save_threads
        from apps.logs.metrics import families
        from apps.observe.ports import METRICS

        METRICS[self.label] = families
        if settings.WEB_THREADS:
            save_threads(settings.WEB_THREADS)
