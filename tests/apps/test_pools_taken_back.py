"""A shared pool is taken back from routes that use it: they stop by themselves, nothing else does, all comes back."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Grant
from apps.alerts.looking.operations import look_at_lost_pools
from apps.audit.models import Entry
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.shared import Route as Frozen
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import LoadBalancer, Pool, Route
from apps.definitions.services import apply_document, confirming, delete_object, dry_run, save_object
from apps.fleet.models import Fleet
from apps.observe.evaluate import lost_pools
from tests.apps.test_grant_services import SPEC, answer, grant, to_pool
from tests.interfaces.people import client_of

SPLIT = {"pools": [{"pool": "operator/search", "weight": 90}, {"pool": "shop", "weight": 10}]}
ASSERTS = [{"path": "/shared", "expect": {"pool": "operator/search"}}]
MIRRORS = {"action": {"pools": [{"pool": "shop"}]}}


@pytest.fixture
def search(tutorial_env: Actor) -> Pool:
    """A pool of the operator that is shared with acme, and routes of acme: alone, in a split, beside it."""
    spec = SPEC | {"tags": {"customer": "acme"}}
    saved: Pool = save_object(actor=tutorial_env, kind="Pool", name="search", spec=spec)
    grant(tutorial_env, tag="customer=acme")
    return saved


@pytest.fixture
def routes(search: Pool, acme: Actor) -> None:
    wanted = to_pool("operator/search") | {"assertions": ASSERTS}
    save_object(actor=acme, kind="Route", name="alone", spec=wanted)
    save_object(actor=acme, kind="Route", name="split", spec=to_pool("shop") | {"path": "/split", "action": SPLIT})
    save_object(actor=acme, kind="Route", name="own", spec=to_pool("shop") | {"path": "/own"})


def taking(name: str = "acme/for-acme") -> AbstractContextManager[None]:
    """Whoever writes has confirmed it."""
    return confirming([name])


def take_back(operator: Actor) -> None:
    """The grant goes."""
    with taking():
        delete_object(actor=operator, kind="Grant", name="for-acme")


def frozen() -> dict[str, Frozen]:
    """acme's routes as the nodes are told of them."""
    (front,) = snapshot_of(Fleet.objects.get(name="us-central1")).load_balancers
    return {each.label.partition("/")[2]: each for each in front.routes if each.label.startswith("acme/")}


def generation() -> int:
    """How often nodes were asked to follow."""
    return Fleet.objects.get(name="us-central1").desired_generation


@pytest.mark.both_engines
def test_routes_stop_and_come_back_and_nothing_else_changes(routes: None, operator: Actor) -> None:
    before, pushed = frozen(), generation()
    take_back(operator)
    assert generation() == pushed + 1
    after = frozen()
    assert after["alone"].pools == ()
    assert after["alone"].fixed_response is not None
    assert after["alone"].fixed_response.status == 500
    assert [share.pool_id for share in after["split"].pools] == [before["split"].pools[1].pool_id]
    assert {name: each for name, each in after.items() if name not in ("alone", "split")} == {
        name: each for name, each in before.items() if name not in ("alone", "split")
    }
    compiled = compile_snapshot(snapshot_of(Fleet.objects.get(name="us-central1")))
    assert not [each for each in compiled.left_out if each.object_id.startswith("route-")]
    grant(operator, "again", tag="customer=acme")
    assert generation() == pushed + 2
    assert frozen() == before


def test_a_route_of_which_rules_ask_much_stops_as_well(search: Pool, operator: Actor, acme: Actor) -> None:
    rules = {
        "rewrite": {"path": "/inside"},
        "timeouts": {"response_ms": 1000},
        "response_headers": {"set": {"X-A": "b"}},
    }
    spec = to_pool("operator/search")
    save_object(actor=acme, kind="Route", name="ruled", spec=spec | {"rules": rules})
    save_object(actor=acme, kind="Route", name="rewritten", spec=spec | {"path": "/p", "prefix_rewrite": "/"})
    take_back(operator)
    compiled = compile_snapshot(snapshot_of(Fleet.objects.get(name="us-central1")))
    assert not [each for each in compiled.left_out if each.object_id.startswith("route-")]
    config = compiled.output.files["haproxy.cfg"].decode()
    for route in Route.objects.filter(name__in=("ruled", "rewritten")):
        _, _, backend = config.partition(f"\nbackend route-{route.pk} from http\n")
        assert backend.lstrip().startswith("http-request return status 500")


def test_the_plan_of_a_document_says_what_would_stop_and_applying_it_needs_the_name(
    routes: None, operator: Actor
) -> None:
    moved: Any = {"kind": "Grant", "name": "for-acme", "spec": {"account": "acme", "tag": "nothing=here"}}
    with pytest.raises(Invalid, match="2 routes of 1 account would lose a shared pool"):
        apply_document(actor=operator, objects=[moved])
    with confirming(["*"]):
        plan = dry_run(operator, partial(apply_document, actor=operator, objects=[moved])).result
    (said,) = plan.losses
    assert "only one: acme/alone, acme/split." in said
    assert said.endswith("confirm=acme/for-acme")
    assert not frozen()["alone"].fixed_response
    with taking("acme/another"), pytest.raises(Invalid):
        apply_document(actor=operator, objects=[moved])
    with taking():
        apply_document(actor=operator, objects=[moved])
    assert frozen()["alone"].fixed_response


def test_a_tag_that_a_pool_loses_takes_it_back_and_gives_it_again(routes: None, operator: Actor) -> None:
    before = frozen()
    with taking("operator/search"):
        save_object(actor=operator, kind="Pool", name="search", spec=SPEC)
    assert frozen()["alone"].fixed_response
    save_object(actor=operator, kind="Pool", name="search", spec=SPEC | {"tags": {"customer": "acme"}})
    assert frozen() == before


def test_another_accounts_routes_go_on(routes: None, operator: Actor, globex: Actor) -> None:
    grant(operator, "for-globex", account="globex", tag="customer=acme")
    theirs = to_pool("operator/search", "theirs.globex.example")
    save_object(actor=operator, kind="Route", name="theirs", account="globex", spec=theirs)
    take_back(operator)
    (front,) = snapshot_of(Fleet.objects.get(name="us-central1")).load_balancers
    (found,) = (each for each in front.routes if each.label == "globex/theirs")
    assert found.pools
    assert found.fixed_response is None
    assert {each.account for each in look_at_lost_pools(now()).seen} == {"acme"}


def test_the_owner_is_told_by_condition_alert_audit_log_and_page(routes: None, operator: Actor, acme: Actor) -> None:
    assert not list(lost_pools.evaluate_all())
    take_back(operator)
    verdicts = {each.object_id: each for each in lost_pools.evaluate_all()}
    route = Route.objects.get(name="alone")
    assert set(verdicts) == {route.pk, Route.objects.get(name="split").pk} == lost_pools.existing()["route"]
    assert verdicts[route.pk].message == (
        "Pool operator/search is not shared with this account any more. "
        "Choose another pool, or ask the operator to share it again."
    )
    assert {(each.account, each.name) for each in look_at_lost_pools(now()).seen} == {
        ("acme", "alone"),
        ("acme", "split"),
    }
    told = Entry.objects.filter(object_kind="Route", action="take_back").values_list("account__name", "object_label")
    assert sorted(told) == [("acme", "alone"), ("acme", "split")]
    assert Entry.objects.filter(object_kind="Grant", action="delete", account__name="acme").exists()
    client = client_of(acme)
    shown = client.get(reverse("web:route", args=[route.pk])).content.decode()
    assert "Pool operator/search is not shared with this account any more." in shown
    assert f'href="{reverse("web:pool", args=[Pool.objects.get(name="search").pk])}"' not in shown
    for name in ("web:routes", "web:pools", "web:overview"):
        assert client.get(reverse(name)).status_code == 200
    grant(operator, "again", tag="customer=acme")
    assert not list(lost_pools.evaluate_all())
    again = Entry.objects.filter(object_kind="Route", action="share_again")
    assert again.count() == 2


def test_the_owner_goes_on_changing_its_route_and_moves_it_away(routes: None, operator: Actor, acme: Actor) -> None:
    take_back(operator)
    save_object(actor=acme, kind="Route", name="alone", spec=to_pool("operator/search") | {"methods": ["GET"]})
    with pytest.raises(Invalid):
        save_object(actor=acme, kind="Route", name="new", spec=to_pool("operator/search", "new.acme.example"))
    save_object(actor=acme, kind="Route", name="alone", spec=to_pool("shop"))
    assert frozen()["alone"].pools


def test_on_the_page_a_grant_is_taken_away_by_whoever_read_how_many_routes_stop(routes: None, operator: Actor) -> None:
    client = client_of(operator)
    page = client.get(reverse("web:grant", args=["for-acme"])).content.decode()
    assert "2 routes of Acme Stores may lose a shared pool." in page
    where = reverse("web:grant-delete", args=["for-acme"])
    answered = client.post(where, {"confirm": "for-acme"}, follow=True).content.decode()
    assert "2 routes of 1 account would lose a shared pool" in answered
    assert Grant.objects.exists()
    client.post(where, {"confirm": "for-acme", "confirm_loss": "true"})
    assert not Grant.objects.exists()
    assert frozen()["alone"].fixed_response


def test_a_grant_of_a_hostname_is_not_taken_away_like_this(tutorial_env: Actor, acme: Actor) -> None:
    grant(tutorial_env, hostname="granted.example")
    save_object(actor=acme, kind="Route", name="user", spec=answer("granted.example"))
    with taking(), pytest.raises(Exception, match="acme/user"):
        delete_object(actor=tutorial_env, kind="Grant", name="for-acme")
    assert LoadBalancer.objects.exists()


def test_the_owner_is_told_as_well_when_a_tag_of_the_pool_shares_it_again(routes: None, operator: Actor) -> None:
    shared = SPEC | {"tags": {"customer": "acme"}}
    with taking("operator/search"):
        save_object(actor=operator, kind="Pool", name="search", spec=SPEC | {"tags": {"tier": "1"}})
    assert frozen()["alone"].pools == ()
    save_object(actor=operator, kind="Pool", name="search", spec=SPEC | {"tags": {"tier": "2"}})
    assert not Entry.objects.filter(action="share_again").exists()
    save_object(actor=operator, kind="Pool", name="search", spec=shared)
    assert frozen()["alone"].pools != ()
    told = Entry.objects.filter(action="share_again").values_list("account__name", "object_label")
    assert sorted(told) == [("acme", "alone"), ("acme", "split")]
