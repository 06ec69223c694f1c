"""Two nodes in memory that run the first revision of their fleet, for tests of the pages about them."""

from __future__ import annotations

import pytest

from apps.accounts.models import Account
from apps.drivers.proxy.memory import memory_node
from apps.fleet.models import Fleet
from tests.apps.pushed import Env, NodesRemembered, make_env
from tests.conftest import actor_of

PREFIX = "running"


def _run() -> None:
    make_env(actor_of("operator", Account.Kind.OPERATOR), PREFIX).reconcile()


_RUNNING = NodesRemembered(_run)


@pytest.fixture
def env(db: None) -> Env:
    """The operator, the fleet, and its nodes in memory."""
    _RUNNING.put()
    nodes = memory_node(f"{PREFIX}-n1"), memory_node(f"{PREFIX}-n2")
    return Env(actor_of("operator", Account.Kind.OPERATOR), Fleet.objects.get(name="here"), nodes)
