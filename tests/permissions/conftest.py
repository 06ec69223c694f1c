"""The environment that the table is asked in, made once for all modules that ask it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import transaction
from django.test import override_settings
from pytest_django.plugin import DjangoDbBlocker

from apps.core.secrets import keys
from tests.permissions.env import Env, make_env


@contextmanager
def _refusals_unsaid() -> Iterator[None]:
    """Every refusal of a page would write its traceback into the log: thousands of them, and nobody reads it here."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="package")
def env(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Env]:
    """One environment for all rows; what each of them does is undone, and in the end the environment is."""
    # Nothing can be sent to port 0: what asks the DNS is refused at once.
    nobody_resolves = override_settings(RESOLVERS=["127.0.0.1:0"])
    with nobody_resolves, _refusals_unsaid(), django_db_blocker.unblock(), transaction.atomic():
        made = make_env()
        keys.said()  # the first look stores what later ones compare the key with
        made.clients["operators", "admin"].get("/")  # the first page reads what all others have in common
        yield made
        transaction.set_rollback(True)
