"""Targets and minutes are kept, failures are waited out, and weights follow what was counted."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

import pytest
from django.db.models import F

from apps.accounts.models import Account
from apps.audit.models import Entry
from apps.core.clock import database_now, now
from apps.definitions.models import Backend, Pool
from apps.definitions.services import apply_document
from apps.definitions.serving import clouds_alone
from apps.drivers.clouds.contract import CloudError, Numbers, TargetHealth
from apps.drivers.clouds.memory import MemoryCloud, memory_cloud
from apps.fleet.models import CloudAccount, Region, Stack
from apps.observe.evaluate.evaluator import ConditionEvaluator
from apps.observe.models import Condition
from apps.stacks.cloud import reading
from apps.stacks.cloud import weight_moves as moving
from apps.stacks.models import BackendWeight, CloudSample, CloudTarget, StackReading, StackRevision, StackSync
from tests.conftest import actor_of
from tests.fixture_cache import CachedFixture

pytestmark = pytest.mark.django_db

NETWORK = {"vpc": "vpc-0a1b2c3d", "subnets": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"]}


def a_backend(region: str, address: str, limit: int) -> dict[str, object]:
    server = {"name": "one", "address": address, "port": 80}
    return {"region": region, "limit": {"kind": "rate", "value": limit}, "servers": [server]}


@pytest.fixture
def cloud() -> MemoryCloud:
    name = uuid.uuid4().hex
    found = memory_cloud(name)
    found.health = []
    found.name = name  # type: ignore[attr-defined]  # for the stack below
    return found


def build() -> None:
    """A stack that stands, and a pool in two regions behind it."""
    operator = actor_of("operator", Account.Kind.OPERATOR)
    regions = [{"kind": "Region", "name": name, "spec": {"title": name}} for name in ("frankfurt", "ireland")]
    stack = {"cloud_account": "prod", "cloud_region": "eu-central-1", "region": "frankfurt", "network": NETWORK}
    backends = [a_backend("frankfurt", "10.0.0.10", 100), a_backend("ireland", "10.1.0.10", 100)]
    listener = {"name": "web", "protocol": "http", "port": 80, "default_pool": "shop"}
    objects = [
        *regions,
        {"kind": "CloudAccount", "name": "prod", "spec": {"cloud": "aws"}},
        {"kind": "Stack", "name": "aws-frankfurt", "spec": stack},
        {"kind": "Pool", "name": "shop", "spec": {"backends": backends}},
        {"kind": "LoadBalancer", "name": "front", "spec": {"stacks": ["aws-frankfurt"], "listeners": [listener]}},
    ]
    apply_document(actor=operator, objects=objects)
    found = Stack.objects.select_related("cloud_account", "region").get()
    revision = StackRevision.objects.create(
        stack=found, number=1, generation=1, digest="", document=b"", secrets=b"", summary="", actor="somebody"
    )
    StackSync.objects.update_or_create(stack=found, defaults={"applied": revision})


STANDING = CachedFixture(build)


@pytest.fixture
def stack(db: None, cloud: MemoryCloud) -> Stack:
    """The stack, in a cloud of this test alone."""
    STANDING.put()
    CloudAccount.objects.update(endpoint_url=f"memory://{cloud.name}")  # type: ignore[attr-defined]  # see above
    return Stack.objects.select_related("cloud_account", "region").get()


def home_and_away() -> tuple[Backend, Backend]:
    rows = {row.region.name: row for row in Backend.objects.select_related("region")}
    return rows["frankfurt"], rows["ireland"]


def minutes(backend: Backend, rate: float, *, count: int = 3, until: datetime | None = None) -> list[Numbers]:
    """Whole minutes with so many requests a second."""
    end = (until or now()).replace(second=0, microsecond=0)
    group = f"group-{backend.pk}"
    return [
        Numbers(group, f"bkd-{backend.pk}", end - timedelta(minutes=number), requests=round(60 * rate))
        for number in range(count)
    ]


def weights() -> dict[str, int]:
    names = {row.pk: row.region.name for row in Backend.objects.select_related("region")}
    return {names[row.backend_id]: row.weight for row in BackendWeight.objects.all()}


def verdict() -> tuple[str, str]:
    """What is said of the pool, and the problem that an operator sees."""
    row = Condition.objects.get(object_kind="pool", object_id=Pool.objects.get().pk, type="Healthy")
    return row.reason, row.message


def targets(*states: str) -> list[TargetHealth]:
    """Targets of the backend at home."""
    name = f"bkd-{home_and_away()[0].pk}"
    return [TargetHealth("g", name, f"10.0.0.{10 + at}", 80, state, "503") for at, state in enumerate(states)]


def test_a_pool_that_only_clouds_serve_is_judged_by_their_checks(stack: Stack, cloud: MemoryCloud) -> None:
    for states, reason in (
        (("healthy", "healthy"), "AllServersUp"),
        (("healthy", "unhealthy"), "SomeServersDown"),
        (("unhealthy", "unhealthy"), "NoServerUp"),
        (("unknown",), "NotObserved"),
    ):
        cloud.health = targets(*states)
        assert reading.read_stack(stack_id=stack.pk)
        assert verdict()[0] == reason
    assert clouds_alone() == {Pool.objects.get().pk}


def test_nodes_of_fleets_say_nothing_of_a_pool_that_only_clouds_serve(stack: Stack) -> None:
    evaluator = ConditionEvaluator()
    assert evaluator.evaluate({}, {}, now()) == []
    Stack.objects.get().load_balancers.clear()  # control: in no cloud, the pool is judged by what nodes say
    assert [each.reason for each in ConditionEvaluator().evaluate({}, {}, now()) if each.type == "Healthy"] == [
        "NotObserved"
    ]


def test_targets_are_kept_with_since_when_they_are_so(stack: Stack, cloud: MemoryCloud) -> None:
    cloud.health = [
        TargetHealth("g", "bkd-4", "10.0.0.10", 80, "healthy"),
        TargetHealth("g", "bkd-4", "10.0.0.11", 80, "x"),
    ]
    assert reading.read_stack(stack_id=stack.pk)
    first = CloudTarget.objects.get(address="10.0.0.10")
    cloud.health = [TargetHealth("g", "bkd-4", "10.0.0.10", 80, "unhealthy", "It answers 500.")]
    reading.read_stack(stack_id=stack.pk)
    (row,) = CloudTarget.objects.all()
    assert (row.state, row.reason) == ("unhealthy", "It answers 500.")
    assert row.since > first.since
    reading.read_stack(stack_id=stack.pk)
    assert CloudTarget.objects.get().since == row.since


def test_minutes_are_added_once_and_counted_anew(stack: Stack, cloud: MemoryCloud) -> None:
    (home, _), end = home_and_away(), now()
    cloud.counted = minutes(home, 10, until=end)
    reading.read_stack(stack_id=stack.pk)
    assert CloudSample.objects.count() == 3
    StackReading.objects.update(counted_until=end - timedelta(minutes=2))
    cloud.counted = minutes(home, 20, until=end)
    reading.read_stack(stack_id=stack.pk)
    assert CloudSample.objects.count() == 3
    assert set(CloudSample.objects.values_list("requests", flat=True)) == {1200}


def test_what_a_cloud_says_twice_counts_once(stack: Stack, cloud: MemoryCloud) -> None:
    home, _ = home_and_away()
    cloud.health = 2 * [TargetHealth("g", "bkd-4", "10.0.0.10", 80, "healthy")]
    cloud.counted = 2 * minutes(home, 10)
    assert reading.read_stack(stack_id=stack.pk)
    assert (CloudTarget.objects.count(), CloudSample.objects.count()) == (1, 3)


def test_who_lost_the_claim_writes_no_failure(
    stack: Stack, cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(_: object) -> None:
        StackReading.objects.update(attempt=F("attempt") + 1)
        raise CloudError("AWS did not answer.")

    monkeypatch.setattr(reading, "open_reader", overtaken)
    assert not reading.read_stack(stack_id=stack.pk)
    assert StackReading.objects.get().error == ""


def test_a_cloud_that_is_away_is_left_alone_for_longer_and_longer(stack: Stack, cloud: MemoryCloud) -> None:
    cloud.failure = "AWS did not answer."
    pauses = []
    for _ in range(3):
        reading.read_stack(stack_id=stack.pk)
        row = StackReading.objects.get()
        assert row.next_at is not None
        pauses.append(row.next_at - database_now())
    assert row.error == "AWS did not answer."
    assert pauses[0] < pauses[1] < pauses[2] <= reading.LONGEST_PAUSE
    assert stack.pk not in reading.stacks_to_read()
    assert stack.pk in reading.due_stacks(database_now() + reading.LONGEST_PAUSE)
    cloud.failure = ""
    reading.read_stack(stack_id=stack.pk)
    assert StackReading.objects.get().error == ""


def test_a_stack_without_anything_in_its_cloud_is_not_read(stack: Stack) -> None:
    assert stack.pk in reading.stacks_to_read()
    StackSync.objects.update(applied=None)
    assert reading.stacks_to_read() == []


def test_over_the_limit_weights_move_once_as_an_ordinary_change(stack: Stack, cloud: MemoryCloud) -> None:
    home, _ = home_and_away()
    before = Stack.objects.get().desired_generation
    cloud.counted = minutes(home, 150)
    reading.read_stack(stack_id=stack.pk)
    assert weights() == {"frankfurt": 667, "ireland": 333}
    assert Stack.objects.get().desired_generation == before + 1
    entry = Entry.objects.get(action="move_weights")
    assert "150 requests/s arrive, frankfurt takes 100 requests/s: 33.3 % to ireland." in entry.reason
    assert moving.move_weights(stack) == [], "it rests after a move"


def test_back_below_the_limit_everything_goes_home(stack: Stack, cloud: MemoryCloud) -> None:
    (home, away), end = home_and_away(), now()
    for row, weight in ((home, 667), (away, 333)):
        BackendWeight.objects.create(stack=stack, backend_id=row.pk, weight=weight, changed_at=end)
    cloud.counted = [*minutes(home, 30, until=end), *minutes(away, 15, until=end)]
    reading.read_stack(stack_id=stack.pk)
    assert weights() == {"frankfurt": 1000, "ireland": 0}


def test_old_numbers_move_nothing(stack: Stack, cloud: MemoryCloud) -> None:
    home, _ = home_and_away()
    cloud.counted = minutes(home, 500, until=now() - timedelta(minutes=8))
    reading.read_stack(stack_id=stack.pk)
    assert CloudSample.objects.exists()
    assert weights() == {}


def test_a_drained_region_gets_nothing(stack: Stack, cloud: MemoryCloud) -> None:
    home, _ = home_and_away()
    Region.objects.filter(name="frankfurt").update(drained=True)
    cloud.counted = minutes(home, 20)
    reading.read_stack(stack_id=stack.pk)
    assert weights() == {"frankfurt": 0, "ireland": 1000}


def test_a_pool_in_one_region_has_nowhere_to_go(stack: Stack, cloud: MemoryCloud) -> None:
    home, away = home_and_away()
    away.delete()
    cloud.counted = minutes(home, 500)
    reading.read_stack(stack_id=stack.pk)
    assert Pool.objects.count() == 1
    assert weights() == {}
