"""The audit log is complete: what people, programs, commands and the platform itself do leaves an entry."""

from __future__ import annotations

import io
import sys

import pytest
from django.core.management import call_command

from apps.accounts.actors import Actor
from apps.accounts.models import User
from apps.audit import chain, selectors
from apps.audit.models import Entry
from apps.definitions.services import delete_object, drain_region, save_object
from apps.rollouts import services as rollouts
from apps.rollouts.models import Revision, Rollout
from tests.apps.pushed import Env, add_route


def newest() -> Entry:
    """The last entry."""
    return Entry.objects.latest("id")


def test_a_change_says_the_version_that_it_made_and_a_deletion_the_next_one(acme: Actor) -> None:
    for number in (1, 2):
        save_object(actor=acme, kind="Pool", name="shop", spec={"connect_timeout_ms": 1000 * number})
        assert newest().version == number
    delete_object(actor=acme, kind="Pool", name="shop", account=None, reason="over")
    assert (newest().action, newest().version, newest().reason) == ("delete", 3, "over")
    assert newest().before is not None


def test_draining_a_region_says_the_version_of_the_region(tutorial_env: Actor) -> None:
    row = drain_region(actor=tutorial_env, region="us-central1", drained=True, reason="heat")
    assert (newest().action, newest().version, newest().after) == ("drain", row.version, {"drained": True})


def test_the_end_of_a_rollout_and_what_people_do_with_a_fleet_are_recorded(env: Env) -> None:
    env.reconcile()
    add_route(env.operator, "news", "/news")
    env.reconcile()
    ends = Entry.objects.filter(object_kind="Rollout", action="finish")
    assert set(ends.values_list("object_id", flat=True)) == set(Rollout.objects.values_list("pk", flat=True))
    after = ends.latest("id").after or {}
    assert (after["state"], after["revision"], after["fleet"]) == ("done", 2, env.fleet.name)
    first = Revision.objects.earliest("number")
    rollouts.roll_back(actor=env.operator, revision_id=first.pk, reason="broken")
    rollouts.resume(actor=env.operator, fleet_id=env.fleet.pk, reason="mended")
    rollouts.push_again(actor=env.operator, fleet_id=env.fleet.pk)
    actions = Entry.objects.filter(object_kind="Fleet", object_id=env.fleet.pk).order_by("id")
    assert list(actions.values_list("action", flat=True))[-3:] == ["roll_back", "resume", "push_again"]
    while chain.link_pending():
        continue
    assert chain.verify().broken_at is None


def test_founding_the_operator_is_recorded_without_password_or_token(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse battery staple\n"))
    said = io.StringIO()
    call_command("bootstrap", username="ann", tokens=True, customer="acme", stdout=said)
    rows = [(row.object_kind, row.object_label, row.account.name) for row in Entry.objects.order_by("id")]
    assert rows == [
        ("Person", "ann", "operator"),
        ("Token", "operator/bootstrap", "operator"),
        ("Token", "acme/bootstrap", "acme"),
    ]
    texts = str([(row.before, row.after, row.reason) for row in Entry.objects.all()])
    assert "horse" not in texts
    assert "sw_" in said.getvalue()
    assert "sw_" not in texts


def test_an_operator_that_is_there_keeps_the_password_where_one_is_founded_once(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(password: str, *, once: bool) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{password}\n"))
        said = io.StringIO()
        call_command("bootstrap", username="ann", once=once, stdout=said)
        return said.getvalue()

    assert "ann may sign in." in found("correct horse battery staple", once=True)
    assert "nothing was changed" in found("another phrase of chance", once=True)
    assert User.objects.get().check_password("correct horse battery staple")
    assert Entry.objects.count() == 1
    found("another phrase of chance", once=False)
    assert User.objects.get().check_password("another phrase of chance")


def test_who_commits_late_is_an_author_of_what_is_read_next_and_nobody_is_twice(acme: Actor) -> None:
    def write(name: str, pk: int | None = None) -> int:
        entry = Entry(
            id=pk, actor=name, account=acme.account, action="update", object_kind="Pool", object_label="acme/a"
        )
        entry.save()
        return entry.pk

    first = write("ann")
    assert selectors.authors(selectors.not_read(None), ("Pool",), ()) == "ann"
    write("bob", first + 2)  # while the entry between them is written and not committed
    before = selectors.read_so_far()
    write("cyd", first + 1)
    write("dan", first + 3)
    assert selectors.authors(selectors.not_read(before), ("Pool",), ()) == "dan, cyd"
    assert selectors.authors(selectors.not_read(selectors.read_so_far()), ("Pool",), ()) == "spillway"
