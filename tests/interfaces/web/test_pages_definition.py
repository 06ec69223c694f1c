"""An object's page shows it as YAML, as the call of the API that makes it, and as what it generates on nodes."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
import yaml

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.accounts.tokens import create_token
from apps.compiler.compile import Compilation
from apps.compiler.targets.terraform.document import StackDocument
from apps.definitions.models import LoadBalancer, NetworkList, Policy, Pool, Route, Schedule
from apps.definitions.previewing.calls import call_of, yaml_of
from apps.definitions.services import apply_document, save_object
from apps.fleet.models import Fleet, Node, Region, Stack
from apps.rollouts import own_lines as lines_of
from apps.rollouts.services import reconcile_fleet
from apps.stacks.models import StackSync
from apps.stacks.state import revision_store
from tests.conftest import actor_of
from tests.fixture_cache import CachedFixture
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


def compile_all() -> None:
    """Every fleet has a revision."""
    for fleet in Fleet.objects.all():
        reconcile_fleet(fleet_id=fleet.pk)


_COMPILED = CachedFixture(compile_all)


@pytest.fixture
def compiled(tutorial_env: Actor) -> Actor:
    """The operator of an environment that is compiled."""
    _COMPILED.put()
    return tutorial_env


def a_stack(operator: Actor) -> Stack:
    """A stack that nothing was pushed to."""
    account = {"cloud": "aws", "credentials": "env:PROD"}
    spec = {"cloud_account": "prod", "cloud_region": "eu-central-1", "region": "europe-west1"}
    save_object(actor=operator, kind="CloudAccount", name="prod", spec=account)
    found: Stack = save_object(actor=operator, kind="Stack", name="aws-eu", spec=spec)
    return found


def text_of(actor: Actor, path: str, **headers: str) -> str:
    answer = client_of(actor).get(path, headers=headers)
    assert answer.status_code == 200, path
    return html.unescape(answer.content.decode())


def test_the_yaml_of_a_route_stands_on_its_page_and_applies_without_a_change(tutorial_env: Actor) -> None:
    route = Route.objects.get(name="checkout")
    page = text_of(tutorial_env, f"/routes/{route.pk}")
    assert yaml_of(route) in page
    apply_document(actor=tutorial_env, objects=yaml.safe_load(yaml_of(route))["objects"])
    assert Route.objects.get(pk=route.pk).version == route.version


@pytest.mark.parametrize("model", [LoadBalancer, Route, Pool, Schedule, Region, Fleet, Node])
def test_the_call_of_the_api_makes_the_object_again(tutorial_env: Actor, client: Any, model: type[Any]) -> None:
    row = model.objects.earliest("pk")
    call = call_of(row)
    token = create_token(account=tutorial_env.account, name="calls", role="admin")
    answer = client.put(
        call.path, call.body, "application/json", headers={"Authorization": f"Bearer {token}", "If-Match": "*"}
    )
    assert answer.status_code == 200, answer.content
    assert model.objects.get(pk=row.pk).version == row.version
    assert call.body in call.curl
    assert json.loads(call.body)["spec"]


def test_the_tab_of_the_api_names_method_path_and_body(tutorial_env: Actor) -> None:
    pool = Pool.objects.get(name="shop")
    said = text_of(tutorial_env, f"/definition/pool/{pool.pk}?tab=api")
    for text in ("PUT /api/v1/pools/acme/shop", 'curl -X PUT "$SPILLWAY/api/v1/pools/acme/shop"', call_of(pool).body):
        assert text in said


def test_a_pool_shows_its_own_lines_and_none_of_another(compiled: Actor) -> None:
    shop, api = Pool.objects.get(name="shop"), Pool.objects.get(name="api")
    said = text_of(compiled, f"/definition/pool/{shop.pk}?tab=generated")
    assert f"backend pool-{shop.pk} from pool-http" in said
    assert f"pool-{shop.pk}/rgn-" in said  # its limits
    assert "server srv-" in said
    assert f"pool-{api.pk}" not in said


def test_a_route_shows_the_map_lines_that_lead_to_it_and_from_it(compiled: Actor) -> None:
    route = Route.objects.get(name="checkout")
    said = text_of(compiled, f"/definition/route/{route.pk}?tab=generated")
    assert f"{route.hostname.name}{route.path}/ route-{route.pk}" in said
    assert f"\nroute-{route.pk} " in said or f"<code>route-{route.pk} " in said
    assert f"route-{Route.objects.exclude(pk=route.pk).earliest('pk').pk}\n" not in said


def test_a_load_balancer_shows_its_listeners_and_each_fleet_is_offered(compiled: Actor) -> None:
    front = LoadBalancer.objects.get(name="front")
    said = text_of(compiled, f"/definition/load-balancer/{front.pk}?tab=generated")
    assert f"frontend lst-{front.listeners.earliest('pk').pk} from http" in said
    for fleet in front.fleets.all():
        of_fleet = text_of(compiled, f"/definition/load-balancer/{front.pk}?tab=generated&fleet={fleet.name}")
        assert f"of fleet {fleet.name}, which its nodes are to run" in of_fleet


def test_long_configurations_are_cut_and_say_so(compiled: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_of, "MOST_LINES", 3)
    pool = Pool.objects.get(name="shop")
    said = text_of(compiled, f"/definition/pool/{pool.pk}?tab=generated")
    assert "more lines. The command" in said
    assert f"pool-{pool.pk}/rgn-" not in said


def test_without_a_revision_it_says_that_nothing_is_there_yet(tutorial_env: Actor) -> None:
    pool = Pool.objects.get(name="shop")
    assert "has no revision yet" in text_of(tutorial_env, f"/definition/pool/{pool.pk}?tab=generated")


def test_customers_see_their_own_and_nothing_of_others(compiled: Actor, acme: Actor, globex: Actor) -> None:
    pool, front = Pool.objects.get(name="shop"), LoadBalancer.objects.get(name="front")
    for tab in ("yaml", "api", "generated"):
        path = f"/definition/pool/{pool.pk}?tab={tab}"
        assert client_of(acme).get(path).status_code == 200
        assert client_of(globex).get(path).status_code == 404
        # Everybody routes on the load balancer; how it is made is its owner's business.
        assert client_of(acme).get(f"/definition/load-balancer/{front.pk}?tab={tab}").status_code == 404
    assert 'id="definition"' not in text_of(acme, f"/load-balancers/{front.pk}")
    assert "globex" not in text_of(acme, f"/definition/pool/{pool.pk}?tab=generated")


def test_control_lines_that_lead_to_a_pool_would_name_routes_of_others(compiled: Actor) -> None:
    pool = Pool.objects.get(name="shop")
    (fleet, *_) = Fleet.objects.filter(region__backends__pool=pool).distinct()
    led = lines_of.own_lines(fleet.pk, {f"pool-{pool.pk}"}, values=True)
    own = lines_of.own_lines(fleet.pk, {f"pool-{pool.pk}"})
    assert led is not None
    assert own is not None
    routes = [path for path, _ in led.files if path.endswith("-action.map")]
    assert routes
    assert not [path for path, _ in own.files if path.endswith("-action.map")]


def test_secrets_are_in_no_tab(compiled: Actor, acme: Actor) -> None:
    secret = "a-key-that-nobody-else-may-know-at-all"
    route = Route.objects.get(name="checkout")
    document = yaml.safe_load(yaml_of(route))["objects"][0]
    spec = document["spec"] | {"rules": {"api_keys": {"keys": {"ci": secret}}}}
    save_object(actor=acme, kind="Route", name=route.name, spec=spec, expected_version=route.version)
    for fleet in Fleet.objects.all():
        reconcile_fleet(fleet_id=fleet.pk)
    for tab in ("yaml", "api", "generated"):
        said = text_of(acme, f"/definition/route/{route.pk}?tab={tab}")
        assert secret not in said
    assert "api_keys" in text_of(acme, f"/definition/route/{route.pk}")


def test_operators_see_the_resources_of_stacks_and_customers_do_not(tutorial_env: Actor, acme: Actor) -> None:
    route, stack = Route.objects.get(name="checkout"), a_stack(tutorial_env)
    front = LoadBalancer.objects.get(pk=route.load_balancer_id)
    resources: dict[str, dict[str, Any]] = {
        "aws_lb_listener_rule": {"own": {"priority": 7001}, "other": {"priority": 7002}}
    }
    owners = {"aws_lb_listener_rule.own": f"route-{route.pk}", "aws_lb_listener_rule.other": "route-0"}
    document = StackDocument((), resources, (), {}, owners)
    revision = revision_store.store(
        stack_id=stack.pk,
        generation=1,
        compilation=Compilation(document, (), ()),
        secrets={},
        labels={},
        summary="First.",
        actor="somebody",
    )
    StackSync.objects.update_or_create(stack=stack, defaults={"wanted": revision})
    front.stacks.add(stack)
    path = f"/definition/route/{route.pk}?tab=generated"
    said = text_of(tutorial_env, path)
    assert "aws_lb_listener_rule.own" in said
    assert '"priority": 7001' in said
    assert "7002" not in said
    assert "aws_lb_listener_rule" not in text_of(acme, path)


def test_a_tab_is_a_link_of_the_page_that_it_stands_on(tutorial_env: Actor) -> None:
    pool = Pool.objects.get(name="shop")
    alone = f"/definition/pool/{pool.pk}"
    client = client_of(tutorial_env)
    for path in (f"/pools/{pool.pk}", alone):
        answer = client.get(f"{path}?tab=api")
        assert f'href="{path}?tab=yaml#definition"' in answer.content.decode()
    assert "PUT /api/v1/pools/acme/shop" in text_of(tutorial_env, f"/pools/{pool.pk}?tab=api")
    assert "PUT /api/v1" not in text_of(tutorial_env, f"/pools/{pool.pk}")


@pytest.mark.parametrize("tab", ["", "nothing", "yaml\0", "GENERATED", "../api"])
def test_an_unknown_tab_or_fleet_shows_what_is_first(tutorial_env: Actor, tab: str) -> None:
    pool = Pool.objects.get(name="shop")
    answer = client_of(tutorial_env).get(f"/definition/pool/{pool.pk}", {"tab": tab, "fleet": tab})
    assert answer.status_code == 200
    assert "kind: Pool" in answer.content.decode()


def test_kinds_without_a_document_have_no_tabs(tutorial_env: Actor) -> None:
    front = LoadBalancer.objects.get(name="front")
    hostname = Route.objects.earliest("pk").hostname_id
    client = client_of(tutorial_env)
    assert client.get(f"/definition/hostname/{hostname}").status_code == 404
    assert client.get(f"/definition/listener/{front.listeners.earliest('pk').pk}").status_code == 404
    assert client.get("/definition/nothing/1").status_code == 404


def test_pages_of_other_kinds_show_theirs(tutorial_env: Actor, acme: Actor) -> None:
    made = save_object(actor=acme, kind="NetworkList", name="office", spec={"entries": [{"network": "192.0.2.0/24"}]})
    policy = save_object(actor=acme, kind="Policy", name="fast", spec={"rules": {"access": {"deny": ["office"]}}})
    assert isinstance(made, NetworkList)
    assert isinstance(policy, Policy)
    paths = {
        f"/network-lists/{made.pk}": "kind: NetworkList",
        f"/policies/{policy.pk}": "kind: Policy",
        f"/schedules/{Schedule.objects.earliest('pk').pk}": "kind: Schedule",
        f"/load-balancers/{LoadBalancer.objects.get(name='front').pk}": "kind: LoadBalancer",
        f"/regions/{Region.objects.earliest('pk').name}": "kind: Region",
        f"/nodes/{Node.objects.earliest('pk').pk}": "kind: Node",
    }
    for path, words in paths.items():
        assert words in text_of(tutorial_env, path), path


def test_an_account_of_another_kind_has_no_say_in_it(tutorial_env: Actor) -> None:
    stranger = actor_of("stranger", Account.Kind.CUSTOMER)
    assert client_of(stranger).get(f"/definition/region/{Region.objects.earliest('pk').pk}").status_code == 404
