"""Django's registration of the app "schedules"."""

from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    """Registers apps.schedules."""

    name = "apps.schedules"
    label = "schedules"
