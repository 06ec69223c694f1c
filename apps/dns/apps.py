"""Wiring of the app that pushes zones."""

from __future__ import annotations

from django.apps import AppConfig


class DnsConfig(AppConfig):
    """DNS zones."""

    name = "apps.dns"
    label = "dns"

    def ready(self) -> None:
        """Metrics of zones stand beside those of nodes."""
        from apps.dns.metrics import families
        from apps.observe.ports import METRICS

        METRICS[self.label] = families
