"""Django's registration of the app "rollouts"."""

from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    """Registers apps.rollouts."""

    name = "apps.rollouts"
    label = "rollouts"

    def ready(self) -> None:
        """Metrics of rollouts stand beside those of nodes, and what nodes may hold is not allotted again."""
        from apps.definitions.ports import PORTS
        from apps.observe.ports import METRICS
        from apps.rollouts.held_addresses import held_addresses
        from apps.rollouts.metrics import families

        METRICS[self.label] = families
        PORTS.held_addresses = held_addresses
