"""Fixtures of the tests of services: a world that can be pushed to."""

from __future__ import annotations

import pytest

from tests.apps.pushed import APPLIED, World, put_env


@pytest.fixture
def world(db: None) -> World:
    """Two nodes in memory that run nothing yet, and definitions for them."""
    return put_env(APPLIED)
