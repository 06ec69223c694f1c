"""What pages and API need before the first question is asked of them."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.conf import settings


@pytest.fixture(scope="session", autouse=True)
def _urls() -> None:
    """Every URL is known: importing them takes seconds, in which what the first test has observed would grow old."""
    import_module(settings.ROOT_URLCONF)
