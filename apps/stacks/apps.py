"""Wiring of the app that pushes to clouds."""

from __future__ import annotations

from django.apps import AppConfig


class StacksConfig(AppConfig):
    """Terraform stacks."""

    name = "apps.stacks"
    label = "stacks"
