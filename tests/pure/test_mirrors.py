"""A mirror on each target: Google copies every request, AWS and fleets leave the route out and say why."""

from __future__ import annotations

from dataclasses import replace

from apps.compiler.codec import snapshot_from_json, snapshot_to_json
from apps.compiler.compile import compile_snapshot, compile_stack
from apps.compiler.differences.snapshots import diff_snapshots
from apps.compiler.model.shared import FixedResponse, Protocol, Route, WeightedPool
from apps.compiler.model.stack import StackSnapshot
from apps.compiler.portability.incompatibilities import Target
from apps.compiler.portability.report import portability
from apps.compiler.questions.assertions import happens
from apps.compiler.questions.trace import Question, trace
from apps.compiler.recompile import compile_change
from apps.compiler.targets.terraform.google.url_map import url_map
from tests.conformance.google_url_map import evaluate
from tests.pure import aws_fixtures as aws
from tests.pure import google_fixtures as google
from tests.pure.compiler_fixtures import front, listener, pool, route, snapshot
from tests.schema_facts import errors_in, facts_of

MIRRORED = route(1, "shop.example.com", mirror_pool_id="pool-2")
PLAIN = replace(MIRRORED, mirror_pool_id=None)
ASKED = Question("shop.example.com", "/x", scheme=Protocol.HTTP)


def _left_out(said: StackSnapshot) -> set[tuple[str, str, str]]:
    return {(each.object_id, each.code, each.field) for each in compile_stack(said).left_out}


def _on_google(own: Route, *numbers: int) -> StackSnapshot:
    return google.stack(front(own), pools=tuple(google.cloud_pool(each) for each in numbers))


def test_google_copies_every_request_to_the_mirror() -> None:
    shares = (WeightedPool("pool-1", 90), WeightedPool("pool-3", 10))
    for own in (MIRRORED, replace(MIRRORED, pools=shares), replace(MIRRORED, path="/x", prefix_rewrite="/y")):
        found = evaluate(url_map("stk-3", front(own), listener(1)).body, ASKED)
        assert (found.mirror, [each.pool_id for each in found.pools]) == (
            "pool-2",
            [each.pool_id for each in own.pools],
        )
    assert evaluate(url_map("stk-3", front(PLAIN), listener(1)).body, ASKED).mirror is None


def test_the_provider_of_google_takes_a_mirror_and_no_percentage() -> None:
    document = compile_stack(_on_google(MIRRORED, 1, 2)).output
    assert errors_in(document, facts_of("google")) == []
    (named,) = document.resources["google_compute_url_map"].values()
    (action,) = named["path_matcher"][0]["route_rules"][0]["route_action"]
    action["request_mirror_policy"][0]["mirror_percent"] = 10
    assert any("mirror_percent" in error for error in errors_in(document, facts_of("google")))


def test_portability_says_what_each_target_makes_of_it() -> None:
    pools = (google.cloud_pool(1), google.cloud_pool(2))
    said = [each for each in portability(front(MIRRORED), pools) if each.field == "mirror"]
    assert [(each.target, each.code, each.refused) for each in said] == [
        (Target.HAPROXY, "mirror", True),
        (Target.AWS, "mirror", True),
        (Target.GOOGLE, "mirror_host", False),
    ]


def test_a_mirror_that_google_refuses_takes_its_route_along() -> None:
    assert _left_out(_on_google(MIRRORED, 1)) == {("route-1", "unknown_pool", "mirror")}
    assert _left_out(_on_google(MIRRORED, 1, 2)) == set()
    assert _left_out(_on_google(PLAIN, 1)) == set()


def test_aws_refuses_a_mirror() -> None:
    pools = (aws.pool(1), aws.pool(2))
    assert _left_out(aws.stack(aws.front(MIRRORED), pools=pools)) == {("route-1", "mirror", "mirror")}
    assert _left_out(aws.stack(aws.front(PLAIN), pools=pools)) == set()


def test_a_fleet_leaves_out_a_route_with_a_mirror_and_says_why() -> None:
    pools = (pool(1), pool(2))
    found = compile_snapshot(snapshot(front(MIRRORED), pools=pools))
    assert [(each.object_id, each.code, each.field) for each in found.left_out] == [("route-1", "mirror", "mirror")]
    assert "SPOE" in found.left_out[0].message
    assert compile_snapshot(snapshot(front(PLAIN), pools=pools)).left_out == ()


def test_a_route_that_gets_a_mirror_is_compiled_with_all_checks() -> None:
    before = snapshot(front(PLAIN), pools=(pool(1), pool(2)))
    after = replace(before, load_balancers=(front(MIRRORED),))
    found = compile_change(compile_snapshot(before), before, after)
    assert [each.object_id for each in found.left_out] == ["route-1"]


def test_only_a_route_to_pools_has_a_mirror() -> None:
    answered = replace(MIRRORED, pools=(), fixed_response=FixedResponse(204))
    assert _left_out(_on_google(answered, 1, 2)) == {("route-1", "mirror", "mirror")}


def test_a_trace_names_the_mirror() -> None:
    found = trace(front(MIRRORED), ASKED)
    labels = {"pool-1": "acme/shop", "pool-2": "acme/next"}
    assert found.mirror_pool_id == "pool-2"
    assert happens(found, labels) == "goes to pool acme/shop by route route-1-label, and a copy to pool acme/next"
    assert trace(front(PLAIN), ASKED).mirror_pool_id is None


def test_a_difference_names_the_mirror() -> None:
    pools = (pool(1), pool(2))
    before, after = (snapshot(front(each), pools=pools) for each in (PLAIN, MIRRORED))
    (change,) = diff_snapshots(before, after)
    assert change.sentence == "route shop.example.com /: mirror none → pool-2-label"


def test_a_snapshot_that_was_stored_before_there_were_mirrors_has_none() -> None:
    document = snapshot_to_json(snapshot(front(PLAIN)))
    del document["load_balancers"][0]["routes"][0]["mirror_pool_id"]
    assert snapshot_from_json(document).load_balancers[0].routes == (PLAIN,)
