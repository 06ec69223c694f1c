"""Fixtures of the tests of services: an environment that can be pushed to."""

from __future__ import annotations

import pytest

from tests.apps.pushed import APPLIED, Env, put_env


@pytest.fixture
def env(db: None) -> Env:
    """Two nodes in memory that run nothing yet, and definitions for them."""
    return put_env(APPLIED)
