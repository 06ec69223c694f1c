"""Django's registration of the app "core"."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created

from apps.core import clock
from apps.core.concurrency.politeness import be_polite


class CoreConfig(AppConfig):
    """Registers apps.core."""

    name = "apps.core"
    label = "core"

    def ready(self) -> None:
        """Every new connection is asked what time it is, and on SQLite lets others write."""
        connection_created.connect(clock.on_connection, dispatch_uid="apps.core.clock")
        connection_created.connect(be_polite)
