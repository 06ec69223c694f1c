"""Before a change goes out it is said which region would be over its limit at the traffic of now."""

from __future__ import annotations

from functools import partial

import pytest

from apps.definitions.models import Backend
from apps.definitions.services import set_limit
from apps.overflow.preview import overloads
from tests.apps.observe_env import World, make_env
from tests.apps.overflow_env import make_spilling

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(live_redis: object, still_clock: None) -> World:
    """us (limit 10) is offered 19.9/s, eu (limit 10) serves 2 of its own and what comes."""
    return make_spilling()


def to(world: World, value: int) -> partial[Backend]:
    """A change of the limit of us."""
    return partial(set_limit, actor=world.operator, pool_id=world.pools["acme"].pk, region="us", value=value)


def test_a_limit_that_is_too_low_is_said_before_it_is_set(world: World) -> None:
    found = overloads(world.operator, to(world, 4))
    assert any(sentence.startswith("eu would be at ") for sentence in found)
    assert Backend.objects.get(region__name="us", pool=world.pools["acme"]).limit_value == 10


def test_a_limit_that_makes_room_is_no_matter(world: World) -> None:
    assert overloads(world.operator, to(world, 40)) == ()


def test_without_traffic_nobody_can_say_anything() -> None:
    world = make_env()
    assert overloads(world.operator, to(world, 1)) == ()
