"""Django's registration of the app "issuing"."""

from __future__ import annotations

from django.apps import AppConfig


class IssuingConfig(AppConfig):
    """Automatic certificates."""

    name = "apps.issuing"
    label = "issuing"

    def ready(self) -> None:
        """Metrics of orders stand beside those of nodes."""
        from apps.issuing.metrics import families
        from apps.observe.ports import METRICS

        METRICS[self.label] = families
