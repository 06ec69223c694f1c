"""A load balancer at Google is found, adopted, applied and compiled again; a stack there is read like any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.adoption.contract import Adoption, Wish
from apps.adoption.import_options import Order
from apps.adoption.selectors import adopt, load_balancers_of
from apps.compiler.compile import compile_stack
from apps.compiler.model.shared import Protocol
from apps.compiler.questions.trace import Question
from apps.compiler.targets.terraform.document import StackDocument, terraform_name
from apps.compiler.targets.terraform.google.render import render
from apps.core.errors import Conflict
from apps.definitions.freezing.stack_snapshot import freeze_stack
from apps.definitions.services import apply_document
from apps.fleet.models import CloudAccount, Stack
from apps.stacks.cloud.reading import read_stack
from apps.stacks.models import CloudSample, CloudTarget
from tests.conformance.fake_google import Env, Measured, served
from tests.conformance.google_url_map import evaluate
from tests.pure.google_fixtures import everything

NETWORK = {"vpc": "main", "zones": {"europe-west1": "europe-west3-a", "us-central1": "us-east4-b"}}
HOSTS = ("shop.example.com", "www.example.com", "bare.example.com", "other.example.org")
PATHS = ("/", "/api/x", "/old", "/v1", "/v1/x?q=1", "/health", "/in", "/only", "/nothing")
HEADERS: tuple[dict[str, str], ...] = ({}, {"X-Canary": "yes"}, {"X-Beta": "1"})
ZONES = {"europe-west3-a": "europe-west1", "us-east4-b": "us-central1"}


@pytest.fixture
def env() -> Env:
    found = Env()
    found.apply(render(everything()))
    return found


@pytest.fixture
def url(env: Env) -> Iterator[str]:
    with served(env) as found:
        yield found


@pytest.fixture
def google(tutorial_env: Actor, url: str) -> Actor:
    """The operator, with a cloud account and a stack at Google beside the tutorial's environment."""
    objects: list[dict[str, Any]] = [
        {
            "kind": "CloudAccount",
            "name": "google",
            "spec": {"cloud": "google", "project": "acme-prod", "endpoint_url": url},
        },
        {
            "kind": "Stack",
            "name": "everywhere",
            "spec": {"cloud_account": "google", "cloud_region": "global", "network": NETWORK},
        },
    ]
    apply_document(actor=tutorial_env, objects=objects)
    return tutorial_env


def _adopted(actor: Actor, found_id: str) -> Adoption:
    account = CloudAccount.objects.get(name="google").pk
    wish = Wish("adopted", "acme", regions=ZONES, stack="everywhere")
    return adopt(actor=actor, cloud_account_id=account, order=Order("global", found_id, wish))


def _answers(document: StackDocument, name: str) -> list[object]:
    """What the named URL map does with requests; services are told by the endpoints behind them."""
    found: list[object] = []
    for host, path, method, headers in product(HOSTS, PATHS, ("GET", "PUT"), HEADERS):
        question = Question(host, path, method, Protocol.HTTP, headers)
        outcome = evaluate(document.resources["google_compute_url_map"][name], question)
        pools = sorted((_endpoints(document, share.pool_id), share.part) for share in outcome.pools)
        copies = _endpoints(document, outcome.mirror) if outcome.mirror else None
        found.append((pools, copies, outcome.path, outcome.status, outcome.location))
    return found


def _endpoints(document: StackDocument, pool_id: str) -> list[tuple[str, int]]:
    service = document.resources["google_compute_backend_service"][terraform_name(pool_id)]
    groups = {each["group"].split(".")[1] for each in service["backend"]}
    members = document.resources["google_compute_network_endpoints"]
    return sorted((each["ip_address"], each["port"]) for name in groups for each in members[name]["network_endpoints"])


@pytest.mark.django_db
def test_an_adopted_load_balancer_is_compiled_to_the_same_answers(google: Actor) -> None:
    adoption = _adopted(google, "urlMaps/sw-stk3-lst-1")
    apply_document(actor=google, objects=list(adoption.documents))
    snapshot, _generation = freeze_stack(Stack.objects.get(name="everywhere").pk)
    compilation = compile_stack(snapshot)
    assert compilation.left_out == ()
    (listener,) = compilation.output.resources["google_compute_url_map"]
    assert _answers(compilation.output, listener) == _answers(render(everything()), "lst_1")


@pytest.mark.django_db
def test_what_stands_at_google_is_listed(google: Actor) -> None:
    account = CloudAccount.objects.get(name="google").pk
    found = load_balancers_of(actor=google, cloud_account_id=account, region="global")
    assert [each.id for each in found][:2] == ["targetTcpProxies/sw-stk3-lst-9", "urlMaps/sw-stk3-lst-1"]


@pytest.mark.django_db
def test_health_and_numbers_of_the_stack_are_read_beside_those_of_fleets(google: Actor, env: Env) -> None:
    stack = Stack.objects.get(name="everywhere")
    env.apply(render(replace(everything(), id=f"stk-{stack.pk}")))
    env.unhealthy.add(("198.51.100.11", 8011))
    minute = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=2)
    labels = {"backend_name": f"sw-stk{stack.pk}-bkd-1", "response_code_class": "200"}
    env.measured.append(Measured("loadbalancing.googleapis.com/https/backend_request_count", minute, labels, (120,)))
    assert read_stack(stack_id=stack.pk)
    states = dict(CloudTarget.objects.filter(stack=stack).values_list("object_id", "state"))
    assert states == {"bkd-1": "healthy", "bkd-11": "unhealthy", "bkd-2": "healthy", "bkd-3": "healthy"}
    assert [(each.object_id, each.requests) for each in CloudSample.objects.filter(stack=stack)] == [("bkd-1", 120)]


@pytest.mark.django_db
def test_a_load_balancer_that_is_gone_is_said_so(google: Actor) -> None:
    with pytest.raises(Conflict, match="404"):
        _adopted(google, "urlMaps/gone")
