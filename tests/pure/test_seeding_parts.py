"""`make seed` holds the database for about a second at a time, however slow the machine is."""

from __future__ import annotations

import pytest

from apps.cli.management.commands import seed

# Seconds that a machine needs for each document: a quick one, a busy one, and one that is hardly there.
COSTS = (0.001, 0.02, 0.06)


def holds(cost: float, parts: list[int]) -> list[float]:
    """How long the database is held by each part."""
    return [part * cost for part in parts]


def parts(cost: float, documents: int) -> list[int]:
    """What is written at a time."""
    part = seed.FIRST_PART
    found: list[int] = []
    while sum(found) < documents:
        found.append(part)
        part = seed.next_part(part, part * cost)
    return found


@pytest.mark.parametrize("cost", COSTS)
def test_nobody_waits_much_longer_than_a_second(cost: float) -> None:
    later = holds(cost, parts(cost, 6000))[1:]
    assert max(later) <= seed.HOLD_S + cost


def test_control_in_equal_parts_a_busy_machine_holds_it_for_longer_than_anybody_waits() -> None:
    assert max(holds(COSTS[-1], [seed.MOST_PART] * 6)) > 45


def test_a_quick_machine_writes_many_at_a_time() -> None:
    assert max(parts(COSTS[0], 6000)) == seed.MOST_PART
