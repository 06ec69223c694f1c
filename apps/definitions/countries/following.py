"""Brings the networks of a new database of countries into the rows, and tells nodes whose lists name one that changed.

The file is read where a worker runs. Workers may have files of different days for a while: only a newer one counts.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from django.conf import settings
from django.db import transaction

from apps.core.queue import enqueue
from apps.definitions.countries.database import CountryRead, Unreadable, built_at, countries
from apps.definitions.models import Country, NetworkList
from apps.definitions.selectors import fleets_of
from apps.fleet.services import request_push

logger = logging.getLogger(__name__)
READ_TASK = "apps.definitions.tasks.read_countries"
WAKE_EXPIRES_S = 60.0


def sweep() -> None:
    """Let a worker look at the file, if there is one."""
    if settings.COUNTRIES:
        enqueue(READ_TASK, expires_s=WAKE_EXPIRES_S)


def read_if_newer(path: str) -> bool:
    """Whether the file was newer than what is known, and is known now; one that cannot be read changes nothing."""
    try:
        built = built_at(path)
        if Country.objects.filter(built_at__gte=built).exists():
            return False
        found = countries(path)
    except Unreadable as error:
        logger.warning("countries: %s", error)
        return False
    _store(found, built)
    return True


def _store(found: Mapping[str, CountryRead], built: datetime) -> None:
    rows = [
        Country(code=code, name=each.name, networks="\n".join(each.networks), count=len(each.networks), built_at=built)
        for code, each in found.items()
    ]
    with transaction.atomic():
        before = dict(Country.objects.values_list("code", "networks"))
        changed = {row.code for row in rows if before.get(row.code) != row.networks}
        fields = ("name", "networks", "count", "built_at")
        Country.objects.bulk_create(rows, update_conflicts=True, unique_fields=("code",), update_fields=fields)
        lists = [each for each in NetworkList.objects.exclude(countries=[]) if changed.intersection(each.countries)]
        if fleets := {fleet for each in lists for fleet in fleets_of(each)}:
            request_push(fleets)
