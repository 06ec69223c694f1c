"""The pages of those who operate: overview, fleets, nodes, rollouts; who may see them and what they say."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.compiler.model.capabilities import CAPABILITIES
from apps.fleet.models import Node
from apps.observe.services import note_report
from apps.rollouts.models import FleetSync, Revision, Rollout
from tests.apps.pushed import Env
from tests.conftest import actor_of
from tests.interfaces.people import client_of
from tests.interfaces.running import env

__all__ = ["env"]

OPERATORS_PAGES = ["web:fleets", "web:rollouts", "web:static-ips"]


def text_of(env: Env, name: str, *arguments: int) -> str:
    return client_of(env.operator).get(reverse(name, args=arguments)).content.decode()


@pytest.mark.django_db
def test_an_empty_installation_says_what_to_do_first() -> None:
    operator = actor_of("operator", "operator")
    page = client_of(operator).get("/").content.decode()
    assert "Nothing to show yet" in page
    assert "manage.py apply deploy/examples/tutorial.yaml" in page


def test_the_overview_invents_no_number_before_anything_was_measured(env: Env) -> None:
    page = text_of(env, "web:overview")
    assert "–" in page
    assert "0 /s" not in page


def test_customers_have_a_first_page_of_their_own_and_see_no_page_of_operators(env: Env) -> None:
    customer = client_of(actor_of("acme", "customer"))
    assert customer.get("/").templates[0].name == "pages/overview/home.html"
    rollout, node = Rollout.objects.latest("id"), env.fleet.nodes.earliest("id")
    pages = [
        *map(reverse, OPERATORS_PAGES),
        reverse("web:rollout", args=[rollout.pk]),
        reverse("web:node", args=[node.pk]),
    ]
    assert {page: customer.get(page).status_code for page in pages} == dict.fromkeys(pages, 404)


def test_viewers_see_no_button_that_changes_anything_and_are_refused_when_they_post(env: Env) -> None:
    viewer = client_of(env.operator, Membership.Role.VIEWER)
    page = viewer.get(reverse("web:fleets")).content.decode()
    assert "Redeploy" not in page
    assert viewer.post(reverse("web:fleet-push", args=[env.fleet.pk])).status_code == 403


def test_fleets_say_what_each_node_runs_against_what_it_should(env: Env) -> None:
    page = text_of(env, "web:fleets")
    assert page.count("In sync") == 3  # the fleet and its two nodes
    env.node("n1").unreachable = True
    env.change_pool("blue", "source")
    env.reconcile()
    page = text_of(env, "web:fleets")
    assert "Unreachable" in page
    assert "Behind" in page


def test_a_node_page_shows_what_a_push_would_change(env: Env) -> None:
    env.node("n1").unreachable = True
    env.change_pool("blue", "source")
    env.reconcile()
    page = text_of(env, "web:node", Node.objects.get(name="n1").pk)
    assert "What a push would change" in page
    assert "balance source" in page


def told(env: Env, name: str, version: str, **facts: Any) -> Node:
    """The node, after it has said which HAProxy it has."""
    memory, node = env.node(name), Node.objects.get(name=name)
    memory.haproxy_version = version
    for fact, value in facts.items():
        setattr(memory, fact, value)
    note_report(node_id=node.pk, state=memory.state())
    return node


def test_a_node_page_says_what_its_haproxy_can_do_and_who_holds_a_feature_back(env: Env) -> None:
    able = told(env, "n1", "3.2.26", http3=True, features=("QUIC", "LUA"))
    older = told(env, "n2", "2.6.12")
    page = text_of(env, "web:node", able.pk)
    assert "What this HAProxy can do" in page
    assert "LUA" in page.partition("Features of the build")[2]
    assert "Held back" in page.partition("Speaks HTTP/3")[2].partition("</tr>")[0]
    assert page.count("Missing on n2 (HAProxy 2.6)") == len(CAPABILITIES)
    limits = text_of(env, "web:node", older.pk).partition("Limits bandwidth")[2].partition("</tr>")[0]
    assert "this node serves without limits of bandwidth" in limits
    assert "HAProxy 2.7 or later" in limits
    told(env, "n2", "3.2.26", http3=True)
    page = text_of(env, "web:node", able.pk)
    assert "Held back" not in page
    assert "Missing on" not in page


def test_a_node_page_shows_what_is_not_known_as_unknown(env: Env) -> None:
    silent = told(env, "n1", "")
    assert "Unknown: this node has not said which HAProxy it has." in text_of(env, "web:node", silent.pk)
    older = told(env, "n1", "2.6.12")
    assert "The features of the build are unknown" in text_of(env, "web:node", older.pk)


def test_a_node_that_was_never_seen_has_no_number_of_reloads(env: Env) -> None:
    never = Node.objects.create(account=env.fleet.account, fleet=env.fleet, name="n3", url="https://10.0.0.3")
    row = text_of(env, "web:fleets").partition(f'id="node-{never.pk}"')[2].partition("</tr>")[0]
    assert '<td data-label="Reloads" class="num">–</td>' in row
    assert "Reloads" not in text_of(env, "web:node", never.pk).partition("Facts")[0]


def test_a_rollout_shows_its_nodes_and_the_difference_in_words_and_lines(env: Env) -> None:
    env.change_pool("blue", "source")
    env.reconcile()
    rollout = Rollout.objects.latest("id")
    page = text_of(env, "web:rollout", rollout.pk)
    assert "balance" in page
    assert 'class="add"' in page
    assert all(name in page for name in ("n1", "n2"))


def test_a_running_rollout_says_how_far_it_is_in_the_title(env: Env) -> None:
    env.node("n1").unreachable = True
    env.change_pool("blue", "source")
    env.reconcile()
    rollout = Rollout.objects.latest("id")
    assert f"<title>50 % rollout {rollout.pk}" in text_of(env, "web:rollout", rollout.pk)


def test_rolling_back_by_page_holds_the_fleet_and_keeps_the_reason(env: Env) -> None:
    first = Revision.objects.get(number=1)
    env.change_pool("blue", "source")
    env.reconcile()
    client = client_of(env.operator)
    url = reverse("web:roll-back", args=[first.pk])
    refused = client.post(url, {"reason": " "}, follow=True)
    assert "Give a reason" in refused.content.decode()
    assert FleetSync.objects.get().held_at is None
    page = client.post(url, {"reason": "too many errors"}, follow=True).content.decode()
    assert "held at revision 1" in page
    assert Entry.objects.get(action="roll_back").reason == "too many errors"
    client.post(reverse("web:fleet-resume", args=[env.fleet.pk]))
    assert FleetSync.objects.get().held_at is None
