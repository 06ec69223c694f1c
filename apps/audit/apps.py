"""Django's registration of the app "audit"."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Registers apps.audit."""

    name = "apps.audit"
    label = "audit"
