"""How servers were at a moment that is over: what was stored, and never what is so today."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.fleet.models import Node
from apps.observe.models import Sample
from apps.observe.show.past_health import PastServer, servers_then
from tests.apps.observe_env import START, Env, make_env


@pytest.fixture
def env(db: None) -> Env:
    return make_env()


def saw(env: Env, node: Node, number: int, seconds: int, status: str, resolution: int = 10, check: str = "") -> None:
    name, at = f"srv-{env.servers[number].pk}", START + timedelta(seconds=seconds)
    Sample.objects.create(
        at=at, resolution=resolution, node=node, kind="server", object_id=name, status=status, check_text=check
    )


def then(env: Env, seconds: int, region: str = "") -> dict[str, PastServer]:
    at = START + timedelta(seconds=seconds)
    found = servers_then(env.acme, env.pools["acme"].pk, at, region)
    return {f"{each.region}/{each.name}": each for each in found}


def first(env: Env) -> str:
    return f"{env.servers[0].backend.region.name}/{env.servers[0].name}"


def test_a_server_is_as_it_was_seen_last_before_the_moment_and_not_as_it_became(env: Env) -> None:
    saw(env, env.nodes[0], 0, 0, "UP")
    saw(env, env.nodes[0], 0, 20, "DOWN", check="L4CON")
    saw(env, env.nodes[0], 0, 40, "UP")
    words = [(then(env, second)[first(env)].word, then(env, second)[first(env)].check_text) for second in (5, 25, 45)]
    assert words == [("up", ""), ("down", "L4CON"), ("up", "")]


def test_what_was_seen_longer_than_a_minute_before_or_only_afterwards_is_unknown(env: Env) -> None:
    saw(env, env.nodes[0], 0, 0, "UP")
    assert [then(env, second)[first(env)].word for second in (-1, 59, 60)] == ["unknown", "up", "unknown"]


def test_short_samples_are_believed_before_those_of_minutes_and_the_grain_is_said(env: Env) -> None:
    saw(env, env.nodes[0], 0, 0, "DOWN", resolution=60)
    assert (then(env, 15)[first(env)].word, then(env, 15)[first(env)].exact_to) == ("down", 60)
    saw(env, env.nodes[0], 0, 10, "UP")
    assert (then(env, 15)[first(env)].word, then(env, 15)[first(env)].exact_to) == ("up", 10)


def test_nodes_that_disagreed_are_not_made_one(env: Env) -> None:
    saw(env, env.nodes[0], 0, 0, "UP")
    saw(env, env.nodes[1], 0, 0, "DOWN")
    assert then(env, 5)[first(env)].word == "differs"


def test_a_pool_of_somebody_else_has_no_past_and_a_region_is_asked_alone(env: Env) -> None:
    assert servers_then(env.globex, env.pools["acme"].pk, START) == []
    assert {each.region for each in then(env, 5, "eu").values()} == {"eu"}
