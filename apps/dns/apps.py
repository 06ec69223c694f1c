"""Wiring of the app that pushes zones."""

from __future__ import annotations

from django.apps import AppConfig


class DnsConfig(AppConfig):
    """DNS zones."""

    name = "apps.dns"
    label = "dns"
