"""Wiring of the app that pushes to clouds."""

from __future__ import annotations

from django.apps import AppConfig


class StacksConfig(AppConfig):
    """Terraform stacks."""

    name = "apps.stacks"
    label = "stacks"

    def ready(self) -> None:
        """Records elsewhere follow names that clouds gave; weights that were moved go into the stack's snapshot."""
        from apps.definitions.stack_snapshot import add_weights
        from apps.definitions.zone_records import add_cloud_names
        from apps.stacks.moving import weights_of
        from apps.stacks.outputs import names_of

        add_cloud_names(names_of)
        add_weights(weights_of)
