"""The wake-ups: Celery carries them, the database knows the work."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings

from apps.definitions.countries import following as countries
from apps.definitions.key_sets import fetching, following
from apps.definitions.previewing import portability_report
from apps.definitions.server_sources import finding
from apps.definitions.server_sources.following import FIND_TASK
from apps.definitions.writing.kinds import hostnames


@shared_task(name=hostnames.CHECK_TASK)
def check_hostname(hostname_id: int) -> None:  # noqa: ARG001 - whose turn it is, the database says
    """Verify claimed hostnames, account by account."""
    hostnames.check_in_turns()


@shared_task(name=following.FETCH_TASK)
def fetch_key_sets() -> None:
    """Fetch the key sets that are due, account by account."""
    fetching.fetch_in_turns()


@shared_task(name=countries.READ_TASK)
def read_countries() -> None:
    """Read the database of countries, if there is a newer one."""
    countries.read_if_newer(settings.COUNTRIES)


@shared_task(name=FIND_TASK)
def find_servers() -> None:
    """Ask the sources of servers that are due, account by account."""
    finding.find_in_turns()


@shared_task(name=portability_report.TASK)
def examine_portability(load_balancer_id: int) -> None:
    """Examine every route of a load balancer, for the page that waits for the report."""
    portability_report.examine(load_balancer_id)
