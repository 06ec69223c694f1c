"""What a plan would do: Terraform's changes in our words, and who has to be asked about them."""

from __future__ import annotations

from typing import Any

import pytest

from apps.compiler.compile import compile_stack
from apps.compiler.model.stack import StackSnapshot
from apps.drivers.infra.contract import PlannedChange
from apps.drivers.infra.reading import UNKNOWN, plan_of
from apps.stacks.review.differences import Difference, Words, continues, difference_from_json, moves_weights_only, read
from apps.stacks.review.policies import approves, released
from apps.stacks.review.replacements import NOTICED
from apps.stacks.run.states import MOVES, TERMINAL, IllegalMove, S, check_move
from apps.stacks.state.revision_store import labels_in
from tests.golden.test_aws_documents import CASES as AWS
from tests.golden.test_google_documents import CASES as GOOGLE

WORDS = Words(
    owners={"aws_lb_listener_rule.one": "route-1", "aws_lb_target_group.blue": "bkd-4"},
    labels={"route-1": "shop.example.com/", "bkd-4": "blue in frankfurt"},
    names={"arn:blue": "aws_lb_target_group.blue"},
)


def change(before: Any, after: Any, *actions: str, address: str = "aws_lb_listener_rule.one") -> Difference:
    kind = address.partition(".")[0]
    return read(PlannedChange(address, kind, actions or ("update",), before, after), WORDS)


def rule(*weights: tuple[str, int], **more: Any) -> dict[str, Any]:
    groups = [{"arn": arn, "weight": weight} for arn, weight in weights]
    return {"action": [{"type": "forward", "forward": [{"target_group": groups}]}], **more}


def said(found: Difference) -> list[str]:
    return [detail.sentence for detail in found.details]


def test_a_weight_is_called_a_weight_of_what_it_belongs_to() -> None:
    found = change(rule(("arn:blue", 50), ("arn:x", 50)), rule(("arn:blue", 80), ("arn:x", 20)))
    assert said(found) == ["weight of blue in frankfurt: 50 % → 80 %", "weight of arn:x: 50 % → 20 %"]
    assert (found.label, found.object_id, found.weights_only) == ("shop.example.com/", "route-1", True)


def test_weights_are_told_as_shares_of_whatever_whole_numbers_the_cloud_is_given() -> None:
    """19 to 1 becoming 4 to 1 read as a fall to a fifth, and the 1 was not told at all."""
    found = change(rule(("arn:blue", 19), ("arn:x", 1)), rule(("arn:blue", 4), ("arn:x", 1)))
    assert said(found) == ["weight of blue in frankfurt: 95 % → 80 %", "weight of arn:x: 5 % → 20 %"]
    assert found.weights_only


def test_the_order_of_a_list_is_no_change() -> None:
    found = change(rule(("arn:blue", 50), ("arn:x", 50)), rule(("arn:x", 50), ("arn:blue", 50)))
    assert said(found) == []
    assert not found.weights_only


def test_anything_beside_a_weight_is_more_than_a_weight() -> None:
    found = change(rule(("arn:blue", 50), priority=1), rule(("arn:blue", 80), priority=2))
    assert "priority: 1 → 2" in said(found)
    assert not found.weights_only


def test_a_target_that_comes_or_goes_with_its_weight_is_more_than_a_weight() -> None:
    assert not change(rule(("arn:blue", 100)), rule(("arn:x", 100))).weights_only
    assert not change(rule(("arn:blue", 50)), rule(("arn:blue", 40), ("arn:x", 10))).weights_only


def test_what_only_the_apply_will_tell_and_what_is_derived_is_left_out() -> None:
    before = {"arn": "arn:x", "tags": {"a": "1"}, "tags_all": {"a": "1"}, "empty": None}
    after = {"arn": UNKNOWN, "tags": {"a": "2"}, "tags_all": {"a": "2"}, "empty": ""}
    assert said(change(before, after)) == ["tags.a: 1 → 2"]


def test_long_values_are_cut_and_absent_ones_said() -> None:
    (sentence,) = said(change({"body": None}, {"body": "x" * 1000}))
    assert sentence.startswith("body: nothing → xxx")
    assert len(sentence) < 200


def test_a_replacement_is_one_word_and_a_nameless_resource_has_its_address() -> None:
    found = change({"name": "a"}, {"name": "b"}, "delete", "create", address="aws_eip.of_nobody")
    assert (found.action, found.label, said(found)) == ("replace", "aws_eip.of_nobody", ["name: a → b"])


def test_a_balancer_that_is_made_anew_says_first_what_clients_notice() -> None:
    anew = change({"internal": False}, {"internal": True}, "delete", "create", address="aws_lb.web")
    assert said(anew) == [NOTICED["aws_lb"], "internal: False → True"]
    assert said(change({"internal": False}, {"internal": True}, address="aws_lb.web")) == ["internal: False → True"]


def test_a_difference_survives_the_revision_store() -> None:
    found = change(rule(("arn:blue", 50)), rule(("arn:blue", 80)))
    assert difference_from_json(found.as_json()) == found


def test_what_is_left_of_a_plan_continues_it_and_nothing_else_does() -> None:
    one, two = (change(None, {}, "create", address=f"aws_eip.{name}") for name in ("one", "two"))
    gone = change({}, None, "delete", address="aws_eip.one")
    assert continues([one, two], [two])
    assert continues([one], [])
    assert not continues([one], [one, two])
    assert not continues([one], [gone])
    half = change({}, {}, "delete", "create", address="aws_eip.one")
    assert continues([one], [half])
    assert continues([half], [one])
    assert not continues([change({}, {}, address="aws_eip.one")], [half])


WEIGHTS = [change(rule(("arn:blue", 50)), rule(("arn:blue", 80)))]
CREATE = [change(None, {}, "create")]
DELETE = [change({}, None, "delete")]
REPLACE = [change({"name": "a"}, {"name": "b"}, "delete", "create")]


@pytest.mark.parametrize(
    ("approval", "by", "changes", "remaining", "yes"),
    [
        ("by_hand", "ann", CREATE, 1, False),
        ("by_hand", "ann", WEIGHTS, 1, False),
        ("by_hand", "spillway", WEIGHTS, 1, True),
        ("by_hand", "spillway", [*WEIGHTS, *CREATE], 1, False),
        ("by_hand", "spillway", [], 1, False),
        ("automatic_safe", "ann", CREATE, 1, True),
        ("automatic_safe", "ann", [*CREATE, *DELETE], 1, False),
        ("automatic_safe", "ann", REPLACE, 1, False),
        ("automatic", "ann", REPLACE, 1, True),
        ("automatic", "ann", DELETE * 10, 1, True),
        ("automatic", "ann", DELETE * 10, 0, False),
        ("automatic", "ann", DELETE * 9, 0, True),
    ],
)
def test_the_policy_asks_nobody_where_nothing_can_be_lost(
    approval: str, by: str, changes: list[Difference], remaining: int, yes: bool
) -> None:
    assert approves(approval, by, changes, remaining) is yes


def test_only_weights_are_only_weights() -> None:
    assert moves_weights_only(WEIGHTS)
    assert not moves_weights_only([])
    assert not moves_weights_only([*WEIGHTS, *DELETE])


def test_a_protected_address_that_would_go_is_named_once() -> None:
    words = Words({"aws_eip.a": "ip-4", "aws_eip.b": "ip-4"}, {"ip-4": "front"}, {})
    gone = [read(PlannedChange(f"aws_eip.{name}", "aws_eip", ("delete",), {}, None), words) for name in "ab"]
    assert released(gone, {"ip-4"}) == ["front"]
    assert released(gone, {"ip-5"}) == []


def test_terminal_states_have_no_way_out() -> None:
    assert {S.DONE, S.UNCHANGED, S.FAILED, S.DISCARDED, S.SUPERSEDED} == TERMINAL
    for state in TERMINAL:
        with pytest.raises(IllegalMove):
            check_move(state, S.PLANNING)
    assert all(MOVES[state] for state in set(S) - TERMINAL)


def test_secrets_and_what_is_not_known_yet_are_words_in_a_plan() -> None:
    shown = {
        "terraform_version": "1.9.0",
        "resource_changes": [
            {
                "address": "aws_acm_certificate.crt_3",
                "type": "aws_acm_certificate",
                "mode": "managed",
                "change": {
                    "actions": ["create"],
                    "before": None,
                    "after": {"private_key": "hush", "list": [{"a": 1}, {"a": 2}]},
                    "after_unknown": {"arn": True, "list": [{}, {"b": True}]},
                    "after_sensitive": {"private_key": True, "list": [{}, {"a": True}]},
                },
            },
            {"address": "data.x", "type": "x", "mode": "data", "change": {"actions": ["read"]}},
            {"address": "x.y", "type": "x", "mode": "managed", "change": {"actions": ["no-op"]}},
        ],
        "resource_drift": [
            {
                "address": "x.y",
                "type": "x",
                "mode": "managed",
                "change": {"actions": ["update"], "before": {}, "after": {}},
            }
        ],
        "planned_values": {
            "outputs": {"a": {"sensitive": False, "value": 1}, "b": {"sensitive": True, "value": "hush"}}
        },
        "output_changes": {"a": {"actions": ["create"]}},
    }
    plan = plan_of(shown, b"file")
    (found,) = plan.changes
    assert found.after == {
        "private_key": "(sensitive)",
        "arn": UNKNOWN,
        "list": [{"a": 1}, {"a": "(sensitive)", "b": UNKNOWN}],
    }
    assert (plan.drift, plan.outputs, plan.outputs_change) == ((), {"a": 1}, True)
    assert "hush" not in repr(plan)


def test_terraforms_own_sentences_name_things_as_people_do() -> None:
    text = 'aws_lb_target_group.blue["a"]: Creating, after aws_lb_listener_rule.one. See registry.example/aws_lb.x'
    assert WORDS.said(text).startswith("blue in frankfurt: Creating, after shop.example.com/. See")
    assert Words({}, {}, {}).said("aws_lb.lb-1: gone") == "aws_lb.lb-1: gone"


@pytest.mark.parametrize("cases", [AWS, GOOGLE], ids=["aws", "google"])
def test_every_resource_of_a_stack_has_an_object_with_a_name(cases: dict[str, StackSnapshot]) -> None:
    for snapshot in cases.values():
        compilation, labels = compile_stack(snapshot), labels_in(snapshot)
        words = Words(compilation.output.owners, labels, {})
        for kind, names in compilation.output.resources.items():
            assert {words.label_of(f"{kind}.{name}") for name in names} <= set(labels.values())
