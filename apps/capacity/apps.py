"""Django's registration of the app "capacity"."""

from django.apps import AppConfig


class CapacityConfig(AppConfig):
    """Registers apps.capacity."""

    name = "apps.capacity"
    label = "capacity"

    def ready(self) -> None:
        """What the nodes of a region run names the runs that may pass its limits."""
        from apps.capacity.run.bypass_tokens import bypass_tokens_of
        from apps.definitions.ports import PORTS

        PORTS.bypass_tokens = bypass_tokens_of
