"""Django's registration of the app "enrolment"."""

from django.apps import AppConfig


class EnrolmentConfig(AppConfig):
    """Registers apps.enrolment; its rows are apps/fleet's, which everything that reaches nodes reads."""

    name = "apps.enrolment"
    label = "enrolment"
