"""Fixtures of the tests of services: a world that can be pushed to."""

from __future__ import annotations

import secrets

import pytest

from tests.apps.pushed import World, make_world
from tests.conftest import actor_of


@pytest.fixture
def world(transactional_db: None) -> World:
    """Two nodes in memory that run nothing yet, and definitions for them."""
    return make_world(actor_of("operator", "operator"), secrets.token_hex(4))
