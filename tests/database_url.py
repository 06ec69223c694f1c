"""The database of the running test, in the form that processes beside it are told."""

from __future__ import annotations

from urllib.parse import quote

from django.db import connection


def database_url() -> str:
    """The value of SPILLWAY_DATABASE_URL for a program that is to see what the test sees."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    host = quote(str(settings["HOST"]), safe="")
    return f"postgresql://{settings['USER']}:{settings['PASSWORD']}@{host}:{settings['PORT']}/{settings['NAME']}"
