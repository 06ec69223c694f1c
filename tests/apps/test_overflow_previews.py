"""Before a change goes out it is said which region would be over its limit at the traffic of now."""

from __future__ import annotations

from functools import partial

import pytest

from apps.definitions.models import Backend
from apps.definitions.services import set_limit
from apps.overflow.preview import overloads
from tests.apps.observe_env import Env, make_env
from tests.apps.overflow_env import make_spilling

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(live_redis: object, still_clock: None) -> Env:
    """us (limit 10) is offered 19.9/s, eu (limit 10) serves 2 of its own and what comes."""
    return make_spilling()


def to(env: Env, value: int) -> partial[Backend]:
    """A change of the limit of us."""
    return partial(set_limit, actor=env.operator, pool_id=env.pools["acme"].pk, region="us", value=value)


def test_a_limit_that_is_too_low_is_said_before_it_is_set(env: Env) -> None:
    found = overloads(env.operator, to(env, 4))
    assert any(sentence.startswith("eu would be at ") for sentence in found)
    assert Backend.objects.get(region__name="us", pool=env.pools["acme"]).limit_value == 10


def test_a_limit_that_makes_room_is_no_matter(env: Env) -> None:
    assert overloads(env.operator, to(env, 40)) == ()


def test_without_traffic_nobody_can_say_anything() -> None:
    env = make_env()
    assert overloads(env.operator, to(env, 1)) == ()
