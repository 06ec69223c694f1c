"""Django's registration of the app "accounts"."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Registers apps.accounts."""

    name = "apps.accounts"
    label = "accounts"
