"""Django's registration of the app "core"."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created

from apps.core import clock


class CoreConfig(AppConfig):
    """Registers apps.core."""

    name = "apps.core"
    label = "core"

    def ready(self) -> None:
        """Ask the database what time it is with each new connection."""
        connection_created.connect(clock.on_connection, dispatch_uid="apps.core.clock")
