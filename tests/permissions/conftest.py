"""The world that the table is asked in, made once for all modules that ask it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import override_settings
from pytest_django.plugin import DjangoDbBlocker

from tests.permissions.world import World, make_world


@pytest.fixture(scope="package")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """One world for all rows; what each of them does is undone, and in the end the world is."""
    # Nobody answers there: what asks the DNS is refused at once.
    with override_settings(RESOLVERS=["127.0.0.1:9"]), django_db_blocker.unblock(), transaction.atomic():
        yield make_world()
        transaction.set_rollback(True)
