"""The state of a stack, as Terraform's http backend speaks it."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.fleet.models import Stack
from apps.stacks.models import StackRun, StateLock, StateVersion
from apps.stacks.state import passwords
from apps.stacks.state import storage as state
from tests.apps.at_once import at_once
from tests.apps.stacks_env import LINEAGE, Terraform, a_run, a_stack, state_body

pytestmark = pytest.mark.django_db


@pytest.fixture
def stack(operator: Actor) -> Stack:
    """A stack without a state."""
    return a_stack(operator)


@pytest.fixture
def terraform(stack: Stack) -> Terraform:
    """Terraform in an open run of the stack."""
    run, password = a_run(stack)
    return Terraform(stack.pk, run.pk, password)


def test_a_stack_begins_without_a_state(terraform: Terraform) -> None:
    assert terraform.ask("GET").status_code == 204


def test_what_was_written_under_the_lock_is_read_again(terraform: Terraform) -> None:
    assert terraform.lock().status_code == 200
    assert terraform.write(state_body(1)).status_code == 200
    answer = terraform.ask("GET")
    assert (answer.status_code, answer.content) == (200, state_body(1))
    assert answer["Content-MD5"]
    assert terraform.lock(method="UNLOCK").status_code == 200
    assert not StateLock.objects.exists()


def test_a_state_is_sealed_at_rest(terraform: Terraform) -> None:
    terraform.lock()
    terraform.write(state_body(1, outputs={"secret": {"value": "hush-hush", "sensitive": True}}))
    row = StateVersion.objects.get()
    assert b"hush" not in bytes(row.content)
    assert b"hush-hush" in state.content_of(row)


@pytest.mark.both_engines
def test_a_second_lock_is_refused_with_the_words_of_the_holder(terraform: Terraform) -> None:
    terraform.lock("one")
    refused = terraform.lock("two")
    assert refused.status_code == 423
    assert refused.json() == {"ID": "one", "Operation": "OperationTypeApply", "Who": "me"}


@pytest.mark.both_engines
def test_the_same_lock_again_is_welcome_since_an_answer_may_be_lost(terraform: Terraform) -> None:
    assert [terraform.lock("one").status_code for _ in range(2)] == [200, 200]
    assert [terraform.lock("one", "UNLOCK").status_code for _ in range(2)] == [200, 200]


def test_a_lock_is_not_given_back_by_another_id(terraform: Terraform) -> None:
    terraform.lock("one")
    assert terraform.lock("two", "UNLOCK").status_code == 423
    assert StateLock.objects.get().lock_id == "one"


@pytest.mark.parametrize(("lock_id", "code"), [("", 423), ("two", 423)])
def test_a_write_needs_the_id_of_the_lock(terraform: Terraform, lock_id: str, code: int) -> None:
    terraform.lock("one")
    assert terraform.write(state_body(1), lock_id).status_code == code
    assert not StateVersion.objects.exists()


def test_terraforms_own_force_unlock_is_told_where_a_lock_is_taken_away(terraform: Terraform) -> None:
    """It sends neither the lock nor its id; that somebody holds it is not enough to let it go."""
    terraform.lock()
    answer = terraform.ask("UNLOCK")
    assert (answer.status_code, StateLock.objects.count()) == (400, 1)
    assert b"force-unlock with its id and a reason" in answer.content


def test_a_write_without_any_lock_is_refused(terraform: Terraform) -> None:
    assert terraform.write(state_body(1)).status_code == 409
    assert not StateVersion.objects.exists()


@pytest.mark.parametrize("serial", [1, 4])
def test_an_older_serial_and_a_fork_of_the_present_one_are_refused(terraform: Terraform, serial: int) -> None:
    terraform.lock()
    assert terraform.write(state_body(4)).status_code == 200
    assert terraform.write(state_body(serial, resources=2)).status_code == 409
    assert terraform.ask("GET").content == state_body(4)


def test_the_very_same_state_again_is_welcome(terraform: Terraform) -> None:
    terraform.lock()
    assert [terraform.write(state_body(4)).status_code for _ in range(2)] == [200, 200]
    assert StateVersion.objects.count() == 1


def test_a_foreign_lineage_is_refused(terraform: Terraform) -> None:
    terraform.lock()
    terraform.write(state_body(1))
    refused = terraform.write(state_body(2, lineage="another-life"))
    assert refused.status_code == 409
    assert LINEAGE in refused.content.decode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        state_body(1)[:-1],
        state_body(-1),
        state_body(True),
        state_body(1, lineage=""),
        state_body(1, lineage="x" * 65),
        state_body(1, version=3),
        state_body(1, resources=0).replace(b'"resources": []', b'"resources": {"a": 1}'),
    ],
)
def test_what_is_no_state_is_refused(terraform: Terraform, body: bytes) -> None:
    terraform.lock()
    assert terraform.write(body).status_code == 400
    assert not StateVersion.objects.exists()


@pytest.mark.parametrize("md5", ["AAAAAAAAAAAAAAAAAAAAAA==", "no base64", "\u00fc"])
def test_a_state_that_is_not_what_its_md5_says_is_refused(terraform: Terraform, md5: str) -> None:
    terraform.lock()
    assert terraform.write(state_body(1), **{"Content-MD5": md5}).status_code == 400
    assert not StateVersion.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"ID": 1}', b'{"ID": ""}', b'{"ID": "' + b"x" * 65 + b'"}'])
def test_what_is_no_lock_is_refused(terraform: Terraform, body: bytes) -> None:
    assert terraform.ask("LOCK", body).status_code == 400
    assert not StateLock.objects.exists()


def test_a_state_that_knows_resources_is_not_deleted(terraform: Terraform) -> None:
    terraform.lock()
    terraform.write(state_body(1))
    assert terraform.ask("DELETE", query="?ID=one").status_code == 409
    terraform.write(state_body(2, resources=0))
    assert terraform.ask("DELETE", query="?ID=one").status_code == 200
    assert terraform.ask("GET").status_code == 204


def test_strangers_learn_nothing_not_even_which_stacks_there_are(terraform: Terraform, operator: Actor) -> None:
    other = a_stack(operator, "dublin")
    strangers = [
        Terraform(terraform.stack_id, terraform.run_id, "wrong"),
        Terraform(terraform.stack_id, terraform.run_id, "\udcff"[:0] + "ü"),
        Terraform(terraform.stack_id, terraform.run_id + 1, terraform.password),
        Terraform(other.pk, terraform.run_id, terraform.password),
        Terraform(other.pk + 1, terraform.run_id, terraform.password),
    ]
    for method in ("GET", "POST", "DELETE", "LOCK", "UNLOCK"):
        answers = [each.ask(method, b'{"ID": "x"}') for each in strangers]
        assert {(each.status_code, each.content) for each in answers} == {(401, answers[0].content)}
    assert terraform.ask("GET").status_code == 204


@pytest.mark.parametrize("given", ["", "Basic", "Basic !!", "Basic /w==", "Bearer eDp5", "Basic eA=="])
def test_an_odd_authorization_is_nobodys(terraform: Terraform, given: str) -> None:
    assert terraform.ask("GET", Authorization=given).status_code == 401


def test_the_password_ends_with_the_run_and_with_the_attempt(terraform: Terraform) -> None:
    run = StackRun.objects.get(pk=terraform.run_id)
    newer = passwords.mint(run)
    run.save()
    assert terraform.ask("GET").status_code == 401
    again = Terraform(terraform.stack_id, run.pk, newer)
    assert again.ask("GET").status_code == 204
    StackRun.objects.update(finished_at=now())
    assert again.ask("GET").status_code == 401


def test_a_run_without_a_password_is_opened_by_none(terraform: Terraform) -> None:
    StackRun.objects.update(password_digest="")
    assert Terraform(terraform.stack_id, terraform.run_id, "").ask("GET").status_code == 401


def test_an_apply_that_lives_says_so(terraform: Terraform) -> None:
    terraform.lock()
    StateLock.objects.update(seen_at=now() - timedelta(hours=1))
    assert Client().post(f"/state/{terraform.stack_id}/alive").status_code == 401
    assert StateLock.objects.get().seen_at < now() - timedelta(minutes=1)
    assert terraform.ask("POST", path="/alive").status_code == 204
    assert StateLock.objects.get().seen_at > now() - timedelta(minutes=1)
    assert terraform.ask("GET", path="/alive").status_code == 405


def test_other_methods_are_not_taken(terraform: Terraform) -> None:
    assert {terraform.ask(method).status_code for method in ("PUT", "PATCH", "OPTIONS", "TRACE")} == {405}


def test_the_last_fifty_states_are_kept_and_one_of_each_day_before(terraform: Terraform, stack: Stack) -> None:
    moment = now().replace(hour=12, minute=0)
    rows = [
        StateVersion(stack=stack, number=n, serial=n, lineage=LINEAGE, md5="", content=b"", written_by="x")
        for n in range(1, 401)
    ]
    StateVersion.objects.bulk_create(rows)
    for row in StateVersion.objects.all():
        StateVersion.objects.filter(pk=row.pk).update(created_at=moment - timedelta(hours=8 * (400 - row.number)))
    state.forget_old(stack.pk, moment)
    kept = sorted(StateVersion.objects.values_list("number", flat=True), reverse=True)
    assert kept[:50] == list(range(400, 350, -1))
    days = {(moment - timedelta(hours=8 * (400 - number))).date() for number in kept[50:]}
    assert len(days) == len(kept[50:]) == 74


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_of_many_workers_at_once_exactly_one_holds_the_lock(operator: Actor, live_server: Any) -> None:
    import http.client
    import json
    from base64 import b64encode

    stack = a_stack(operator)
    run, password = a_run(stack)
    secret = b64encode(f"run-{run.pk}:{password}".encode()).decode()

    def take(number: int) -> int:
        asking = http.client.HTTPConnection(live_server.thread.host, live_server.thread.port, timeout=60)
        with contextlib.closing(asking):
            asking.request(
                "LOCK", f"/state/{stack.pk}", json.dumps({"ID": f"w{number}"}), {"Authorization": f"Basic {secret}"}
            )
            return asking.getresponse().status

    assert sorted(at_once(*(partial(take, number) for number in range(8)))) == [200, *[423] * 7]
