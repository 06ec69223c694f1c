"""Wiring of the app that pushes to clouds."""

from __future__ import annotations

from django.apps import AppConfig


class StacksConfig(AppConfig):
    """Terraform stacks."""

    name = "apps.stacks"
    label = "stacks"

    def ready(self) -> None:
        """Metrics stand beside those of nodes; definitions ask for what only this app knows."""
        from apps.definitions.ports import PORTS
        from apps.observe.ports import METRICS
        from apps.stacks.cloud.found_servers import servers_of
        from apps.stacks.cloud.weight_moves import weights_of
        from apps.stacks.metrics import families
        from apps.stacks.review.preview import preview
        from apps.stacks.state.outputs import names_of

        METRICS[self.label] = families
        PORTS.cloud_names, PORTS.stack_weights, PORTS.stack_preview = names_of, weights_of, preview
        PORTS.cloud_servers = servers_of
