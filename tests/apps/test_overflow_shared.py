"""A flow is worked out once after each event for all pages of an account, and shows nobody what is others'."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from apps.accounts.actors import Actor
from apps.core import events
from apps.core.requests import answers_kept, asked_once
from apps.observe.live import shared
from apps.overflow import facts, selectors
from apps.overflow.flows import Flow
from tests.apps.observe_env import Env
from tests.apps.overflow_env import make_spilling


@pytest.fixture
def env(db: None, live_redis: object, still_clock: None, monkeypatch: pytest.MonkeyPatch) -> Env:
    """us is at its limit; as in a server no transaction is open, and a slow machine has as much time as it needs."""
    monkeypatch.setattr(shared, "LASTS_S", 600.0)
    monkeypatch.setattr(shared, "connection", SimpleNamespace(in_atomic_block=False))
    monkeypatch.setattr(shared, "_made", {})
    return make_spilling()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The account's name for each time that facts were gathered."""
    found: list[str] = []
    gather = facts.gather

    def noted(actor: Actor, *words: object) -> object:
        found.append(actor.account.name)
        return gather(actor, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(selectors, "gather", noted)
    return found


def pools_in(flow: Flow) -> set[str]:
    return set(flow.pools)


def test_every_page_of_an_account_reads_the_flow_of_a_sample_that_was_made_once(env: Env, made: list[str]) -> None:
    flows = [selectors.flow_overall(env.operator) for _ in range(3)]
    assert flows[0] is flows[2]
    assert made == ["operator"]
    for topic in ("samples", "definitions", "nodes"):
        events.publish(topic, at=1)
        selectors.flow_overall(env.operator)
    assert len(made) == 4
    events.publish("zones", zone=1)  # moves no flow
    selectors.flow_overall(env.operator)
    assert len(made) == 4


def test_a_shared_flow_says_what_one_says_that_was_made_for_this_page(env: Env) -> None:
    assert selectors.flow_overall(env.acme) == selectors.flow_of(env.acme, None)
    assert selectors.flow_and_plan(env.acme, None)[1] == selectors.predicted(env.acme, None)


def test_each_account_reads_its_own_flow(env: Env) -> None:
    flows = {actor.account.name: selectors.flow_overall(actor) for actor in (env.operator, env.acme, env.globex)}
    assert pools_in(flows["operator"]) == pools_in(flows["acme"]) | pools_in(flows["globex"])
    assert not pools_in(flows["acme"]) & pools_in(flows["globex"])


def test_control_without_the_account_in_the_key_a_customer_would_see_all(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = shared._entry
    monkeypatch.setattr(shared, "_entry", lambda key: entry(("every account", key[1])))
    selectors.flow_overall(env.operator)
    assert f"pool-{env.pools['globex'].pk}" in pools_in(selectors.flow_overall(env.acme))


def test_nothing_shared_grows_old(env: Env, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "LASTS_S", 0.0)
    for _ in range(2):
        selectors.flow_overall(env.acme)
    assert len(made) == 2


def test_within_a_transaction_and_without_redis_each_makes_its_own(
    env: Env, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "connection", SimpleNamespace(in_atomic_block=True))
    for _ in range(2):
        selectors.flow_overall(env.acme)
    monkeypatch.setattr(shared, "connection", SimpleNamespace(in_atomic_block=False))
    monkeypatch.setattr(events, "turns", lambda _: None)
    for _ in range(2):
        selectors.flow_overall(env.acme)
    assert len(made) == 4


def test_a_flow_that_could_not_be_made_is_made_by_the_next_who_asks(env: Env) -> None:
    with pytest.raises(ZeroDivisionError):
        shared.once_per_sample(("flow", env.acme.account.pk), lambda: 1 // 0)
    assert selectors.flow_overall(env.acme).pools


def test_a_question_is_asked_once_while_a_page_is_made_and_anew_for_the_next() -> None:
    asked: list[int] = []

    def ask() -> int:
        asked.append(1)
        return len(asked)

    assert [asked_once("question", ask) for _ in range(2)] == [1, 2]  # nobody keeps what nobody forgets
    for turn in (3, 4):
        with answers_kept():
            assert [asked_once("question", ask) for _ in range(3)] == [turn] * 3
