"""Pages of stacks, cloud accounts, static IPs, address pools and adopting."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.audit.models import Entry
from apps.core.clock import now
from apps.definitions.models import Backend, Listener
from apps.definitions.services import apply_document, save_object
from apps.drivers.clouds.contract import FoundLoadBalancer, FoundNetwork, FoundSubnet, Numbers, TargetHealth
from apps.drivers.clouds.memory import MemoryCloud, memory_cloud
from apps.drivers.infra.contract import PlannedChange
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Node, Region, Stack, StaticIP
from apps.observe.models import NodeReport
from apps.stacks.cloud import reading
from apps.stacks.models import StackReading, StackRevision, StackRun, StackSync, StateLock
from apps.stacks.review.differences import Words, read
from apps.stacks.state import revision_store
from tests.conftest import actor_of
from tests.fixture_cache import CachedFixture
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db

NETWORK = {"vpc": "vpc-0a1b2c3d", "subnets": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"]}


@pytest.fixture
def cloud() -> tuple[str, MemoryCloud]:
    name = uuid.uuid4().hex
    return name, memory_cloud(name)


SERVER = {"name": "one", "address": "10.0.0.10", "port": 80}
STACK = {"cloud_account": "prod", "cloud_region": "eu-central-1", "region": "frankfurt", "network": NETWORK}
LISTENER = {"name": "web", "protocol": "http", "port": 80, "default_pool": "shop"}
BOUND = {"stacks": ["aws-frankfurt"], "listeners": [LISTENER | {"static_ip": "front"}]}
OBJECTS: tuple[dict[str, Any], ...] = (
    {"kind": "Region", "name": "frankfurt", "spec": {"title": "Frankfurt"}},
    {"kind": "CloudAccount", "name": "prod", "spec": {"cloud": "aws", "credentials": "env:PROD"}},
    {"kind": "Stack", "name": "aws-frankfurt", "spec": STACK},
    {"kind": "StaticIP", "name": "front", "spec": {"kind": "elastic", "stack": "aws-frankfurt", "protected": True}},
    {"kind": "Pool", "name": "shop", "spec": {"backends": [{"region": "frankfurt", "servers": [SERVER]}]}},
    {"kind": "LoadBalancer", "name": "front", "spec": BOUND},
    {"kind": "LoadBalancer", "name": "next", "spec": {"stacks": ["aws-frankfurt"], "listeners": [LISTENER]}},
)


def _build() -> None:
    apply_document(actor=actor_of("operator", Account.Kind.OPERATOR), objects=list(OBJECTS))
    found = Stack.objects.get()
    fields = {"number": 1, "generation": 1, "document": b"", "secrets": b"", "summary": "All of it."}
    revision = StackRevision.objects.create(stack=found, digest="", actor="somebody", **fields)
    StackSync.objects.update_or_create(
        stack=found,
        defaults={"applied": revision, "wanted": revision, "outputs": {"lb_1_dns_name": "front.elb.example"}},
    )


_BUILT = CachedFixture(_build)


@pytest.fixture
def operator(db: None, request: pytest.FixtureRequest) -> Actor:
    """An admin of the operator account; before anything else, the stack is put where a test wants it."""
    if "stack" in request.fixturenames:
        _BUILT.put()
    return actor_of("operator", Account.Kind.OPERATOR)


@pytest.fixture
def stack(operator: Actor, cloud: tuple[str, MemoryCloud]) -> Stack:
    """A stack with one load balancer and an Elastic IP, as if it were applied."""
    CloudAccount.objects.update(endpoint_url=f"memory://{cloud[0]}")
    return Stack.objects.get()


def text_of(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, path
    return answer.content.decode()


def a_run(stack: Stack, **columns: Any) -> StackRun:
    revision = StackRevision.objects.get(stack=stack)
    return StackRun.objects.create(stack=stack, revision=revision, actor="somebody", **columns)


def test_without_stacks_and_accounts_pages_say_what_to_do(operator: Actor) -> None:
    client = client_of(operator)
    assert "No stacks yet" in text_of(client, "/stacks")
    assert "No cloud accounts yet" in text_of(client, "/cloud-accounts")
    assert "No static IPs" in text_of(client, "/static-ips")


def test_a_cloud_account_and_a_stack_are_made_by_forms(operator: Actor) -> None:
    client = client_of(operator)
    refused = client.post(
        "/cloud-accounts/new", {"/name": "prod", "/spec/cloud": "aws", "/spec/credentials": "AKIA1234"}
    )
    assert refused.status_code == 422
    assert "env:NAME" in refused.content.decode()
    typed = {"/name": "prod", "/spec/cloud": "aws", "/spec/credentials": "env:PROD"}
    assert client.post("/cloud-accounts/new", typed).status_code == 302
    stack = {
        "/name": "aws-frankfurt",
        "/spec/cloud_account": "prod",
        "/spec/cloud_region": "eu-central-1",
        "/spec/approval": "by_hand",
        "/spec/network/vpc": "vpc-0a1b2c3d",
        "/spec/network/subnets": "subnet-0a1b2c3d\nsubnet-1a1b2c3d",
    }
    refused = client.post("/stacks/new", stack)
    assert "Fill in the Spillway region" in refused.content.decode()
    apply_document(actor=operator, objects=[{"kind": "Region", "name": "frankfurt", "spec": {"title": "Frankfurt"}}])
    assert client.post("/stacks/new", stack | {"/spec/region": "frankfurt"}).status_code == 302
    found = Stack.objects.get()
    assert found.network["subnets"] == ["subnet-0a1b2c3d", "subnet-1a1b2c3d"]
    edit = text_of(client, f"/stacks/{found.pk}/edit")
    assert "subnet-1a1b2c3d" in edit
    assert "prod" in text_of(client, "/cloud-accounts")


def test_the_page_of_a_stack_shows_what_stands_in_it(operator: Actor, stack: Stack) -> None:
    client = client_of(operator)
    assert "aws-frankfurt" in text_of(client, "/stacks")
    text = text_of(client, f"/stacks/{stack.pk}")
    for word in ("front.elb.example", "every plan needs approval", "No runs yet", "one to three minutes"):
        assert word in text, word


def test_health_and_numbers_of_the_cloud_stand_on_the_page(
    operator: Actor, stack: Stack, cloud: tuple[str, MemoryCloud]
) -> None:
    backend = Backend.objects.get()
    end = now().replace(second=0, microsecond=0)
    cloud[1].health = [TargetHealth("g", f"bkd-{backend.pk}", "10.0.0.10", 80, "unhealthy", "It answers 500.")]
    cloud[1].counted = [Numbers("g", f"bkd-{backend.pk}", end, requests=1200, status_5xx=12, p95_ms=87.0)]
    reading.read_stack(stack_id=stack.pk)
    text = text_of(client_of(operator), f"/stacks/{stack.pk}?partial=health")
    for word in ("It answers 500.", ">20<", "1.0 %", "87 ms", "Down"):
        assert word in text, word
    text = text_of(client_of(operator), f"/pools/{backend.pool_id}?partial=clouds")
    assert "It answers 500." in text
    assert "within one to three minutes" in text
    cloud[1].failure = "AWS says AccessDenied."
    StackReading.objects.update(next_at=None)
    reading.read_stack(stack_id=stack.pk)
    assert "AWS says AccessDenied." in text_of(client_of(operator), f"/stacks/{stack.pk}")


def test_a_plan_that_waits_is_shown_in_our_words_and_approved_as_shown(operator: Actor, stack: Stack) -> None:
    change = PlannedChange("aws_lb.lb_1", "aws_lb", ("update",), {"idle_timeout": 60}, {"idle_timeout": 90})
    words = Words({"aws_lb.lb_1": "lb-1"}, {"lb-1": "front"}, {})
    run = a_run(stack, state="planned", to_change=1, plan_digest="abc", planned_at=now())
    run.plan = revision_store.seal_plan([read(change, words)], [])
    run.save()
    client = client_of(operator)
    text = text_of(client, f"/stacks/{stack.pk}")
    for word in ("Plan needs approval", "front", "idle_timeout", "Approve", "Discard"):
        assert word in text, word
    client.post(f"/stack-runs/{run.pk}/approve", {"plan": "another"})
    run.refresh_from_db()
    assert run.state == "planned", "another plan than the one that was shown is not approved"
    client.post(f"/stack-runs/{run.pk}/approve", {"plan": "abc"})
    run.refresh_from_db()
    assert (run.state, run.approved_by) == ("approved", "admin-of-operator")


def test_what_the_state_does_not_know_is_listed_and_what_a_plan_takes_over_is_called_so(
    operator: Actor, stack: Stack
) -> None:
    assert "Not in the state" not in text_of(client_of(operator), f"/stacks/{stack.pk}")
    left = {"kind": "aws_eip", "id": "eipalloc-7", "address": "aws_eip.ip_7", "label": "old front"}
    StackSync.objects.filter(stack=stack).update(unknown=[left])
    change = PlannedChange("aws_eip.ip_1", "aws_eip", ("no-op",), {}, {}, imported=True)
    run = a_run(stack, state="planned", plan_digest="abc", planned_at=now())
    run.plan = revision_store.seal_plan([read(change, Words({}, {}, {}))], [])
    run.save()
    text = text_of(client_of(operator), f"/stacks/{stack.pk}")
    for word in ("Not in the state", "old front", "eipalloc-7", "import", "interrupted run"):
        assert word in text, word


def test_a_stack_is_deleted_from_its_page_once_nothing_of_it_stands(operator: Actor, stack: Stack) -> None:
    client, page = client_of(operator), f"/stacks/{stack.pk}"
    refused = client.post(f"{page}/delete", {"confirm": stack.name}, follow=True).content.decode()
    assert "is in use by load balancer front" in refused
    dublin = {"cloud_account": "prod", "cloud_region": "eu-west-1", "region": "frankfurt", "network": NETWORK}
    apply_document(actor=operator, objects=[{"kind": "Stack", "name": "aws-dublin", "spec": dublin}])
    other = Stack.objects.get(name="aws-dublin")
    page, lock = f"/stacks/{other.pk}", StateLock.objects.create(stack=other, lock_id="one", held_by="pia")
    assert f'action="{page}/delete"' in text_of(client, page)
    assert "Type aws-dublin" in client.post(f"{page}/delete", {"confirm": "aws"}, follow=True).content.decode()
    refused = client.post(f"{page}/delete", {"confirm": other.name}, follow=True).content.decode()
    assert "pia holds the lock of its state" in refused
    lock.delete()
    assert client.post(f"{page}/delete", {"confirm": other.name})["Location"] == "/stacks"
    assert not Stack.objects.filter(pk=other.pk).exists()


def test_an_address_pool_is_deleted_from_its_list_once_no_address_comes_from_it(operator: Actor, stack: Stack) -> None:
    objects: list[dict[str, Any]] = [
        {"kind": "AddressPool", "name": "spare", "spec": {"blocks": ["203.0.113.0/29"]}},
        {"kind": "StaticIP", "name": "one", "spec": {"kind": "vip", "region": "frankfurt", "pool": "spare"}},
    ]
    apply_document(actor=operator, objects=objects)
    client, pool = client_of(operator), AddressPool.objects.get()
    assert f'action="/address-pools/{pool.pk}/delete"' in text_of(client, "/static-ips")
    refused = client.post(f"/address-pools/{pool.pk}/delete", follow=True).content.decode()
    assert "is in use by static IP one" in refused
    StaticIP.objects.filter(name="one").delete()
    assert client.post(f"/address-pools/{pool.pk}/delete")["Location"] == "/static-ips"
    assert not AddressPool.objects.exists()


def test_overflow_says_where_clouds_stand(operator: Actor, acme: Actor, stack: Stack) -> None:
    assert 'see the <a href="/stacks">stacks</a>' in text_of(client_of(operator), "/overflow")
    assert 'see the <a href="/pools">pools</a>' in text_of(client_of(acme), "/overflow")
    pool = Backend.objects.get().pool_id
    assert f'see <a href="/pools/{pool}">the pool</a>' in text_of(client_of(operator), f"/overflow?pool={pool}")


@pytest.mark.parametrize(
    ("planned", "approved", "words"),
    [(False, False, ["done", "failed", "", ""]), (True, True, ["done", "done", "done", "failed"])],
)
def test_a_failed_run_marks_the_step_that_failed(
    operator: Actor, stack: Stack, words: list[str], *, planned: bool, approved: bool
) -> None:
    times = {"planned_at": now() if planned else None, "approved_at": now() if approved else None}
    run = a_run(stack, state="failed", message="No credentials.", finished_at=now(), **times)
    page = text_of(client_of(operator), f"/stack-runs/{run.pk}")
    steps = re.search(r'<ol class="steps">(.*?)</ol>', page, re.DOTALL)
    assert steps
    classes = [re.sub(r".*class=\"(\w+)\".*|.*", r"\1", found) for found in re.findall(r"<li[^>]*>", steps[1])]
    assert classes == words


def test_a_lock_is_shown_and_taken_away_only_with_a_reason(operator: Actor, stack: Stack) -> None:
    StateLock.objects.create(stack=stack, lock_id="l-1", held_by="run-7", info={"Operation": "OperationTypeApply"})
    client = client_of(operator)
    assert "The state is locked" in text_of(client, f"/stacks/{stack.pk}")
    client.post(f"/stacks/{stack.pk}/unlock", {"lock": "l-1", "reason": ""})
    assert StateLock.objects.exists()
    client.post(f"/stacks/{stack.pk}/unlock", {"lock": "l-1", "reason": "The worker burnt down."})
    assert not StateLock.objects.exists()
    assert Entry.objects.filter(reason="The worker burnt down.").exists()


def test_a_static_ip_moves_to_another_load_balancer_as_one_change(operator: Actor, stack: Stack) -> None:
    client, address = client_of(operator), StaticIP.objects.get()
    assert "not allocated yet" in text_of(client, "/static-ips")
    page = text_of(client, f"/static-ips/{address.pk}")
    assert '<option value="next">' in page
    before = Stack.objects.get().desired_generation
    client.post(f"/static-ips/{address.pk}/move", {"load_balancer": "next", "reason": "The new front."})
    bound = Listener.objects.filter(static_ip=address).values_list("load_balancer__name", flat=True)
    assert list(bound) == ["next"]
    assert Stack.objects.get().desired_generation == before + 1
    client.post(f"/static-ips/{address.pk}/release")
    assert not Listener.objects.filter(static_ip=address).exists()
    assert StaticIP.objects.exists()
    client.post(f"/static-ips/{address.pk}/move", {"load_balancer": "next"})
    assert list(bound.all()) == ["next"], "an address that serves nothing goes to all listeners that bind none"
    assert Entry.objects.filter(object_kind="StaticIP", action="move").count() == 2


def test_a_protected_static_ip_is_not_given_back(operator: Actor, stack: Stack) -> None:
    client, address = client_of(operator), StaticIP.objects.get()
    client.post(f"/static-ips/{address.pk}/release")
    client.post(f"/static-ips/{address.pk}/delete", {"confirm": "front"})
    assert StaticIP.objects.exists()
    StaticIP.objects.update(protected=False)
    client.post(f"/static-ips/{address.pk}/delete", {"confirm": "wrong"})
    assert StaticIP.objects.exists()
    client.post(f"/static-ips/{address.pk}/delete", {"confirm": "front"})
    assert not StaticIP.objects.exists()


def test_an_address_is_allotted_from_a_pool_by_the_form(operator: Actor) -> None:
    client = client_of(operator)
    assert client.post("/address-pools/new", {"/name": "public", "/spec/blocks": "203.0.113.0/29"}).status_code == 302
    pool = AddressPool.objects.get()
    assert "203.0.113.0/29" in text_of(client, f"/address-pools/{pool.pk}/edit")
    typed = {"/name": "vip", "/spec/kind": "node", "/spec/pool": "public"}
    assert client.post("/static-ips/new", typed).status_code == 302
    assert StaticIP.objects.get().address == "203.0.113.1"


def test_a_released_address_that_a_node_may_still_hold_is_shown_with_the_node(operator: Actor, stack: Stack) -> None:
    region = Region.objects.create(account=operator.account, name="somewhere", title="Somewhere")
    fleet = Fleet.objects.create(account=operator.account, region=region, name="somewhere")
    node = Node.objects.create(account=operator.account, fleet=fleet, name="far-1")
    client = client_of(operator)
    assert "not free yet" not in text_of(client, "/static-ips")
    NodeReport.objects.create(node=node, addresses={"10.0.0.100": "held"})
    shown = text_of(client, "/static-ips")
    assert "Released, and not free yet" in shown
    assert '10.0.0.100</th><td data-label="Nodes">far-1</td>' in shown


def test_what_a_cloud_has_is_listed_and_adopted_with_a_report(
    operator: Actor, stack: Stack, cloud: tuple[str, MemoryCloud]
) -> None:
    described = {
        "loadBalancer": {"Scheme": "internal"},
        "listeners": [
            {
                "Port": 80,
                "Protocol": "HTTP",
                "DefaultActions": [
                    {"Type": "fixed-response", "Order": 1, "FixedResponseConfig": {"StatusCode": "404"}}
                ],
                "Rules": [],
            }
        ],
    }
    cloud[1].balancers = [FoundLoadBalancer("Application Load Balancer", "old-front", "arn:old", described)]
    client, account = client_of(operator), CloudAccount.objects.get()
    looked = f"/adopt?cloud={account.pk}&/region=eu-central-1"
    assert "old-front" in text_of(client, looked)
    text = text_of(client, f"{looked}&found=arn:old&/name=adopted&ours=frankfurt&/stack=aws-frankfurt")
    for word in ("adopted.yaml", "load balancer is public", "kind: LoadBalancer"):
        assert word in text, word
    said = f"{looked}&found=arn:old&/name=adopted&/certificates=arn:x%3Dy%3Dshop%0D%0Aarn:z%3Dmore&/addresses="
    assert "No imported listener uses more" in text_of(client, f"{said}203.0.113.7%3Dip")
    kept = text_of(client, f"{said}203.0.113.7", 422)
    assert "Write cloud=spillway, one pair per line. Not a pair: 203.0.113.7" in kept
    assert "arn:x=y=shop" in kept, "what was typed is kept"
    assert "Fill in the name of the load balancer" in text_of(client, f"{looked}&found=arn:old", 422)
    cloud[1].failure = "AWS says AccessDenied."
    assert "AWS says AccessDenied." in text_of(client, looked, 422)


def test_customers_have_no_clouds(acme: Actor, stack: Stack) -> None:
    client, address = client_of(acme), StaticIP.objects.get()
    for path in (
        "/stacks",
        f"/stacks/{stack.pk}",
        "/cloud-accounts",
        "/adopt",
        "/static-ips",
        f"/static-ips/{address.pk}",
    ):
        assert client.get(path).status_code == 404, path


def test_what_a_target_would_refuse_is_said_before_anything_moves(operator: Actor, stack: Stack) -> None:
    pool = {
        "backends": [
            {"region": "frankfurt", "servers": [{"name": "one", "address": "10.0.0.10", "port": 80, "weight": 50}]}
        ]
    }
    apply_document(actor=operator, objects=[{"kind": "Pool", "name": "shop", "spec": pool}])
    balancer = Listener.objects.earliest("pk").load_balancer_id
    text = text_of(client_of(operator), f"/portability/{balancer}")
    for word in ("AWS", "Google", "A fleet of HAProxy", "Remedy"):
        assert word in text, word
    assert client_of(operator).get(f"/portability/{balancer}?target=azure").status_code == 404


def test_a_cloud_account_is_tested_and_what_the_cloud_says_is_said(stack: Stack) -> None:
    client, account = client_of(actor_of("operator", Account.Kind.OPERATOR)), CloudAccount.objects.get()
    test = f"/cloud-accounts/{account.pk}/test"
    assert f'action="{test}"' in text_of(client, "/cloud-accounts")
    said = client.post(test, follow=True).content.decode()
    assert "Cloud account prod works. It has 0 load balancers in eu-central-1." in said
    assert "You tested a moment ago" in client.post(test, follow=True).content.decode()
    cache.clear()
    CloudAccount.objects.update(endpoint_url="", credentials="env:NOBODY")
    said = client.post(test, follow=True).content.decode()
    assert "Cloud account prod does not work in eu-central-1." in said
    assert "SPILLWAY_CLOUD_NOBODY" in said


def test_the_form_of_a_stack_offers_the_networks_of_its_cloud_account(
    operator: Actor, stack: Stack, cloud: tuple[str, MemoryCloud]
) -> None:
    subnets = (FoundSubnet("subnet-0a", "web", "eu-central-1a", "10.7.1.0/24"), FoundSubnet("subnet-0b"))
    cloud[1].networks = [FoundNetwork("vpc-0a", "front", "10.7.0.0/16", subnets), FoundNetwork("vpc-0b")]
    client, typed = client_of(operator), {"/spec/cloud_account": "prod", "/spec/cloud_region": "eu-central-1"}

    def offered(kind: str, **more: str) -> list[str]:
        answer = client.get(f"/options/{kind}", typed | {f"/spec/network/{name}": text for name, text in more.items()})
        return re.findall(r'data-value="([^"]+)"', answer.content.decode())

    assert offered("networks", vpc="") == ["vpc-0a", "vpc-0b"]
    assert offered("networks", vpc="front") == ["vpc-0a"]
    assert offered("subnets", vpc="vpc-0a", subnets="subnet-0a") == ["subnet-0b"]
    assert offered("subnets", vpc="vpc-0b") == []
    assert offered("blocks", vpc="vpc-0a") == ["10.7.0.0/16", "10.7.1.0/24"]
    assert offered("blocks", vpc="", vpc_networks="10.7.0.0/16") == ["10.7.1.0/24"]
    assert cloud[1].asked == 1  # what the cloud said is kept for a while
    form = text_of(client, "/stacks/new")
    assert 'hx-get="/options/networks"' in form
    assert 'data-adds="id_/spec/network/subnets"' in form
    assert 'data-adds="id_/spec/network/vpc_networks"' in form


def test_the_form_of_a_stack_offers_regions_and_buckets_of_its_cloud_account(
    operator: Actor, stack: Stack, cloud: tuple[str, MemoryCloud]
) -> None:
    cloud[1].regions, cloud[1].buckets = ["eu-central-1", "us-east-1"], ["acme-lb-logs", "acme-web"]
    client = client_of(operator)

    def offered(kind: str, **typed: str) -> list[str]:
        answer = client.get(f"/options/{kind}", {f"/spec/{name}": text for name, text in typed.items()})
        return re.findall(r'data-value="([^"]+)"', answer.content.decode())

    assert offered("cloud-regions", cloud_account="prod", cloud_region="us") == ["us-east-1"]
    typed = {"cloud_account": "prod", "cloud_region": "eu-central-1", "network/log_bucket": "logs"}
    assert offered("buckets", **typed) == ["acme-lb-logs"]
    form = text_of(client, "/stacks/new")
    for kind in ("cloud-regions", "buckets"):
        assert f'hx-get="/options/{kind}"' in form


def test_a_cloud_that_refuses_says_so_in_the_list_of_its_networks(
    operator: Actor, acme: Actor, stack: Stack, cloud: tuple[str, MemoryCloud]
) -> None:
    cloud[1].failure = "AWS says UnauthorizedOperation: you may not."
    typed = {"/spec/network/vpc": "", "/spec/cloud_account": "prod", "/spec/cloud_region": "eu-central-1"}
    client = client_of(operator)
    assert "AWS says UnauthorizedOperation" in client.get("/options/networks", typed).content.decode()
    nowhere = client.get("/options/networks", typed | {"/spec/cloud_region": "moon"}).content.decode()
    assert "eu-central-1, or global" in nowhere
    assert "Choose the cloud account" in client.get("/options/subnets").content.decode()
    assert client_of(operator, "viewer").get("/options/networks", typed).status_code == 403
    assert client_of(acme).get("/options/networks", typed).status_code == 404
    assert cloud[1].asked == 1


def test_a_zone_on_route_53_is_tested_by_the_cloud_account_of_its_stack(operator: Actor, stack: Stack) -> None:
    spec = {"domain": "example.net", "driver": "route53", "stack": stack.name}
    zone = save_object(actor=operator, kind="Zone", name="example", spec=spec)
    client = client_of(operator)
    assert "Cloud account prod works." in client.post(f"/zones/{zone.pk}/test", follow=True).content.decode()
    cache.clear()
    typed = {"/spec/domain": "example.org", "/spec/driver": "route53", "/spec/stack": stack.name, "test": "1"}
    page = client.post("/zones/new", typed | {"/spec/key_algorithm": "hmac-sha256"}).content.decode()
    assert "The connection works." in page
    assert "Cloud account prod works." in page
