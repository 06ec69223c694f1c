"""The page of a rollout in waves: where it stands, what each wave said, and the way to end the waves."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.accounts.models import Membership
from apps.rollouts.models import Rollout
from tests.apps.pushed import Env, begin_now, put_env
from tests.apps.test_rollout_stages import STAGES
from tests.apps.test_rollout_stages import change as change_both
from tests.apps.test_rollout_stages import latest as latest_of
from tests.apps.test_rollout_waves import CHANGED, latest, pass_wave
from tests.apps.watched import serve, soaked
from tests.interfaces.people import client_of


@pytest.fixture
def env(db: None) -> Env:
    """The fleet whose first node took a change a moment ago."""
    env = put_env(CHANGED)
    begin_now(latest())
    return env


def page_of(env: Env, rollout: Rollout) -> str:
    answer = client_of(env.operator).get(reverse("web:rollout", args=[rollout.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def test_it_shows_each_wave_and_what_it_said(env: Env) -> None:
    pass_wave(env)
    page = page_of(env, latest())
    assert "Wave 2 of 3" in page
    assert "1 node served 100 requests; 0.0 % of the responses were 5xx." in page
    assert "Push to all nodes" in page


def test_a_wave_that_did_worse_is_told_with_its_pool_and_the_nodes_that_were_spared(env: Env) -> None:
    since = soaked(latest(), seconds=20)
    serve(since, "n1", failed=40)
    serve(since, "n3")
    env.reconcile()
    page = page_of(env, Rollout.objects.get(gates__0__passed=False))
    assert "The revision failed its check after wave 1." in page
    assert "Pool operator/blue: 40.0 % of its 100 responses are 5xx (0.0 % on the other nodes)." in page
    assert page.count("Not reached") == 5  # three nodes, two waves
    assert "A node rejected the revision" not in page


def test_a_wave_that_waits_for_numbers_says_so(env: Env) -> None:
    soaked(latest())
    env.reconcile()
    page = page_of(env, latest())
    assert "The next wave waits." in page
    assert "Nobody knows how n1 does with the change." in page


def test_the_button_asks_for_a_reason_and_ends_the_waves(env: Env) -> None:
    client = client_of(env.operator)
    url = reverse("web:push-to-all", args=[latest().pk])
    assert "Give a reason" in client.post(url, {"reason": ""}, follow=True).content.decode()
    assert (
        "The remaining nodes get the revision now." in client.post(url, {"reason": "x"}, follow=True).content.decode()
    )
    assert latest().wave == 3


def test_viewers_have_no_button(env: Env) -> None:
    answer = client_of(env.operator, Membership.Role.VIEWER).get(reverse("web:rollout", args=[latest().pk]))
    assert "Push to all nodes" not in answer.content.decode()


def test_a_rollout_that_waits_for_an_earlier_stage_says_so_and_may_be_pushed(db: None) -> None:
    env = put_env(STAGES)
    change_both(env)
    page = page_of(env, latest_of("there"))
    assert "Waits for an earlier stage" in page
    assert "Fleet here of an earlier stage has not proven it yet." in page
    assert "Push to all nodes" in page
