"""What is pure needs no settings, no cache and no database, so nothing is turned down for it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _from_nothing() -> None:
    """Nothing."""
