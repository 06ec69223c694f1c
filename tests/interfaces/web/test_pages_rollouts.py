"""The page of one rollout when things go wrong, the way back to old revisions, and what these pages cost."""

from __future__ import annotations

from django.urls import reverse

from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.drivers.proxy.contract import Refused
from apps.rollouts.models import Revision, Rollout
from tests.apps.pushed import Env
from tests.interfaces.people import client_of
from tests.interfaces.running import env

__all__ = ["env"]


def page_of(env: Env, rollout: Rollout, **query: str) -> str:
    answer = client_of(env.operator).get(reverse("web:rollout", args=[rollout.pk]), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_refusal_names_the_node_the_object_and_the_line(env: Env) -> None:
    line = env.line_of_pool("blue")
    env.memory[1].refusal = Refused("unknown keyword", stage="validate", line=line)
    env.change_pool("blue", "roundrobin")
    env.reconcile()
    page = page_of(env, Rollout.objects.latest("id"))
    assert "A node rejected the revision." in page
    assert "n2" in page
    assert "unknown keyword" in page
    assert f"Object: pool operator/blue, line {line} of haproxy.cfg." in page
    assert "Rolled back" in page
    fleets = client_of(env.operator).get(reverse("web:fleets")).content.decode()
    assert "The newest revision was rejected." in fleets


def test_the_live_part_of_a_rollout_answers_alone_with_its_title_while_it_runs(env: Env) -> None:
    env.node("n1").unreachable = True
    env.change_pool("blue", "source")
    env.reconcile()
    rollout = Rollout.objects.latest("id")
    part = page_of(env, rollout, partial="progress")
    assert f"<title>50 % rollout {rollout.pk}" in part
    assert "<html" not in part
    assert "What changed" not in part


def test_revisions_beyond_the_newest_twenty_can_be_gone_back_to(env: Env) -> None:
    first = Revision.objects.get(number=1)
    for number in range(2, 42):
        Revision.objects.create(
            fleet=first.fleet, number=number, digest=f"{number:064}", snapshot=b"", bundle=b"", summary="", actor="ada"
        )
    rollout = Rollout.objects.latest("id")
    newest = page_of(env, rollout)
    assert "older=22" in newest
    assert reverse("web:roll-back", args=[first.pk]) not in newest
    oldest = page_of(env, rollout, older="3")
    assert "Revisions of" in oldest
    assert f">{first.number}" in oldest
    assert page_of(env, rollout, older="<script>").count("Roll back<span") == 20


def test_viewers_may_read_a_rollout_and_not_roll_back(env: Env) -> None:
    env.change_pool("blue", "source")
    env.reconcile()
    first = Revision.objects.get(number=1)
    viewer = client_of(env.operator, Membership.Role.VIEWER)
    rollout = Rollout.objects.latest("id")
    assert "Roll back<span" not in viewer.get(reverse("web:rollout", args=[rollout.pk])).content.decode()
    assert viewer.post(reverse("web:roll-back", args=[first.pk]), {"reason": "x"}).status_code == 403
    assert Rollout.objects.latest("id") == rollout


def test_a_reason_that_no_column_takes_is_refused_and_nothing_is_pushed(env: Env) -> None:
    client, url = client_of(env.operator), reverse("web:fleet-push", args=[env.fleet.pk])
    before = Entry.objects.filter(action="push_again").count()
    assert client.post(url, {"reason": "a\0b"}).status_code == 400
    assert Entry.objects.filter(action="push_again").count() == before
    assert client.post(url, {"reason": "a b"}).status_code == 302
    assert Entry.objects.filter(action="push_again").count() > before
