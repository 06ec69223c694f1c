"""Wiring of the app that pushes to clouds."""

from __future__ import annotations

from django.apps import AppConfig


class StacksConfig(AppConfig):
    """Terraform stacks."""

    name = "apps.stacks"
    label = "stacks"

    def ready(self) -> None:
        """Metrics stand beside those of nodes; records, snapshots and dry runs ask for what only this app knows."""
        from apps.definitions.freezing.stack_snapshot import add_weights
        from apps.definitions.freezing.zone_records import add_cloud_names
        from apps.definitions.writing.dry_runs.stack_differences import add_stack_foresight
        from apps.observe.metrics import add_family
        from apps.stacks.cloud.weight_moves import weights_of
        from apps.stacks.metrics import families
        from apps.stacks.review.preview import foresee
        from apps.stacks.state.outputs import names_of

        add_family(families)
        add_cloud_names(names_of)
        add_weights(weights_of)
        add_stack_foresight(foresee)
