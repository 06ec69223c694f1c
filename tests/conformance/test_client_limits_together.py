"""Four nodes count a client's requests together: of traffic spread 6:3:1:1 the limit's part is admitted."""

from __future__ import annotations

import pytest

from apps.compiler.model.policy import ClientLimit, Rules
from tests.bench.client_limits import LIMIT, Result, measure

pytestmark = pytest.mark.e2e

GOAL = 0.02


def test_four_nodes_admit_what_one_limit_says() -> None:
    found = measure(Rules(client_limit=ClientLimit(requests=LIMIT)))
    assert abs(found.error) <= GOAL, found


def test_nodes_that_only_look_at_their_own_counts_admit_too_many() -> None:
    """The negative control: without the lines that add other nodes' counts."""
    found: Result = measure(Rules(client_limit=ClientLimit(requests=LIMIT)), without=",add(txn.counted)")
    assert found.error > 10 * GOAL, found
