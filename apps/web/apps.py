"""Django's registration of the app "web"."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Registers apps.web."""

    name = "apps.web"
    label = "web"

    def ready(self) -> None:
        """Begin to record who signs in."""
        from apps.web.sign_in import audit as sign_in_audit

        sign_in_audit.listen()
