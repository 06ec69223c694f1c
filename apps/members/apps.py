"""Django's registration of the app "members"."""

from django.apps import AppConfig


class MembersConfig(AppConfig):
    """Registers apps.members."""

    name = "apps.members"
    label = "members"

    def ready(self) -> None:
        """Listen for what other apps only announce."""
        from apps.members import impersonation, invitations

        invitations.listen()
        impersonation.listen()
