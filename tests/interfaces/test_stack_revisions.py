"""What a stack was told is read and compared, by page and API, and holds no secret."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.compile import Compilation
from apps.compiler.targets.terraform.document import ProviderNeed, StackDocument
from apps.definitions.services import apply_document
from apps.fleet.models import Stack
from apps.stacks.models import RunEvent, StackRevision, StackRun, StackSync
from apps.stacks.state import revision_store
from tests.interfaces.api.test_api_objects import Api, api, assert_problem, house
from tests.interfaces.people import client_of

__all__ = ["api", "house"]
KEY = "-----BEGIN PRIVATE KEY----- of a shop"


def stored(stack: Stack, weight: int, **more: object) -> StackRevision:
    """A revision in which a rule sends this weight to a target group."""
    resources: dict[str, dict[str, Any]] = {
        "aws_lb": {"lb_1": {"name": "sw-stk1-lb-1"}},
        "aws_lb_listener_rule": {"route_2": {"action": [{"weight": weight}]}},
    }
    document = StackDocument(
        providers=(ProviderNeed("aws", "hashicorp/aws", "~> 5.0", {"region": "eu-central-1"}),),
        resources=resources | ({"aws_eip": {"ip_1": more}} if more else {}),
        variables=("key_crt_1",),
        outputs={"lb_1": "${aws_lb.lb_1.dns_name}"},
        owners={"aws_lb.lb_1": "lb-1", "aws_lb_listener_rule.route_2": "route-2"},
    )
    return revision_store.store(
        stack_id=stack.pk,
        generation=1,
        compilation=Compilation(document, (), ()),
        secrets={"key_crt_1": KEY},
        labels={"lb-1": "load balancer front", "route-2": "route <cart>"},
        summary=f"Weight {weight}.",
        actor="somebody",
    )


@pytest.fixture
def stack(tutorial_env: Actor, operator: Actor) -> Stack:
    """A stack with three revisions: of the last two one weight differs."""
    spec = {"cloud_account": "prod", "cloud_region": "eu-central-1", "region": "europe-west1"}
    account = {"cloud": "aws", "credentials": "env:PROD"}
    objects = [
        {"kind": "CloudAccount", "name": "prod", "spec": account},
        {"kind": "Stack", "name": "aws-eu", "spec": spec},
    ]
    apply_document(actor=operator, objects=objects)
    found = Stack.objects.get(name="aws-eu")
    StackSync.objects.get_or_create(stack=found)
    for weight, more in ((10, {}), (20, {"domain": "vpc"}), (30, {"domain": "vpc"})):
        stored(found, weight, **more)
    return found


def test_a_page_shows_how_a_revision_differs_from_the_one_before(operator: Actor, stack: Stack) -> None:
    client = client_of(operator)
    assert f"/stacks/{stack.pk}/revisions/3" in client.get(f"/stacks/{stack.pk}").content.decode()
    text = client.get(f"/stacks/{stack.pk}/revisions/3").content.decode()
    for shown in ("from revision 2 to 3", "1 part<", "aws_lb_listener_rule.route_2  route &lt;cart&gt;"):
        assert shown in text, shown
    assert "aws_eip" not in text
    assert "&quot;weight&quot;: 20" in text
    assert "&quot;weight&quot;: 30" in text


def test_it_is_compared_with_any_other_and_shown_whole(operator: Actor, stack: Stack) -> None:
    client, path = client_of(operator), f"/stacks/{stack.pk}/revisions/3"
    text = client.get(path, {"against": "1"}).content.decode()
    assert "from revision 1 to 3" in text
    assert "aws_eip.ip_1" in text
    assert "all new" in client.get(f"/stacks/{stack.pk}/revisions/1").content.decode()
    assert "Both revisions are identical" in client.get(path, {"against": "3"}).content.decode()
    whole = client.get(path, {"whole": "1"}).content.decode()
    assert "sw-stk1-lb-1" in whole
    for strange in ("99", "0", "-1", "x", "1" * 40, "\x00", "²"):
        assert client.get(path, {"against": strange}).status_code == 404, strange
    assert client.get(f"/stacks/{stack.pk}/revisions/4").status_code == 404
    assert client.get(f"/stacks/{stack.pk}/revisions/{'9' * 19}").status_code == 404


def test_no_secret_is_in_what_is_shown(operator: Actor, house: Api, stack: Stack) -> None:
    client = client_of(operator)
    for path in ("3", "3?whole=1", "1"):
        assert "PRIVATE KEY" not in client.get(f"/stacks/{stack.pk}/revisions/{path}").content.decode()
    for path in ("revisions", "revisions/3", "revisions/3/differences"):
        assert b"PRIVATE KEY" not in house("GET", f"stacks/aws-eu/{path}").content
    assert revision_store.open_revision(StackRevision.objects.get(stack=stack, number=3)).secrets == {"key_crt_1": KEY}


def test_programs_read_and_compare_revisions(house: Api, api: Api, stack: Stack) -> None:
    assert [each["number"] for each in house("GET", "stacks/aws-eu/revisions").json()["items"]] == [3, 2, 1]
    document = house("GET", "stacks/aws-eu/revisions/3").json()["document"]
    assert set(document) == {
        *("aws_lb.lb_1", "aws_lb_listener_rule.route_2", "aws_eip.ip_1"),
        *("provider.aws", "output.lb_1", "variable.key_crt_1"),
    }
    told = house("GET", "stacks/aws-eu/revisions/3/differences").json()
    assert told == {
        "number": 3,
        "against": 2,
        "changes": [
            {
                "address": "aws_lb_listener_rule.route_2",
                "object": "route <cart>",
                "before": {"action": [{"weight": 20}]},
                "after": {"action": [{"weight": 30}]},
            }
        ],
    }
    first = house("GET", "stacks/aws-eu/revisions/1/differences").json()
    assert (first["against"], {each["before"] for each in first["changes"]}) == (None, {None})
    since = house("GET", "stacks/aws-eu/revisions/3/differences?against=1").json()["changes"]
    assert [each["address"] for each in since] == ["aws_eip.ip_1", "aws_lb_listener_rule.route_2"]
    for path in ("revisions/3/differences?against=9", f"revisions/{'9' * 20}", f"states/{'9' * 20}"):
        assert_problem(house("GET", f"stacks/aws-eu/{path}"), 404)
    assert_problem(house("GET", "stacks/aws-eu/revisions/3/differences?against=x"), 422)
    for path in ("revisions", "revisions/3", "revisions/3/differences"):
        assert_problem(api("GET", f"stacks/aws-eu/{path}"), 404)


def test_programs_hear_what_terraform_says(house: Api, stack: Stack) -> None:
    run = StackRun.objects.create(
        stack=stack, revision=StackRevision.objects.filter(stack=stack).latest("number"), state="applying", actor="x"
    )
    for number in (1, 2, 3):
        RunEvent.objects.create(run=run, number=number, kind="complete", address="aws_lb.lb_1", label="front")
    told = house("GET", f"stack-runs/{run.pk}/events").json()["items"]
    assert [(each["number"], each["object"]) for each in told] == [(1, "front"), (2, "front"), (3, "front")]
    later = house("GET", f"stack-runs/{run.pk}/events?after=2").json()["items"]
    assert [each["number"] for each in later] == [3]


def test_programs_ask_for_a_look_for_drift(house: Api, stack: Stack) -> None:
    assert_problem(house("POST", "stacks/aws-eu/check"), 409)
    stack.sync.applied = stack.revisions.first()
    stack.sync.save()
    answer = house("POST", "stacks/aws-eu/check")
    assert (answer.status_code, answer.json()["kind"]) == (202, "check")
