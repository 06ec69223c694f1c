"""Attack 1: one object that HAProxy does not take, among a hundred customers on four real nodes.

The other ninety-nine are live, and the culprit is named, whether HAProxy names it, says nothing, or crashes on it.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.accounts.models import Account
from apps.definitions.models import Certificate, Pool, Route
from apps.fleet.models import Fleet
from apps.rollouts import selectors
from apps.rollouts.models import Quarantine, Rollout, Step
from apps.rollouts.push.states import StepState
from tests.conformance.slow_haproxy import SlowHaproxy
from tests.conftest import actor_of
from tests.database_url import database_url
from tests.e2e import poison
from tests.e2e.installation import FLEETS, NODES, Installation, broker, built, wait_until
from tests.e2e.verdicts import elapsed, trial

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

CULPRIT = 42
OTHERS_LIVE_S, NAMED_S = 10.0, 30.0
CONTROL = "tests/apps/test_rollouts_quarantine.py::test_without_the_search_one_object_holds_up_everybody"
rounds = itertools.count(1)


@pytest.fixture(scope="module")
def db(lasting_db: None) -> None:
    """One database for all tests of this module."""


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> SlowHaproxy:
    """The binary of all nodes."""
    folder = Path(tmp_path_factory.mktemp("slow"))
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    return SlowHaproxy(folder)


@pytest.fixture(scope="module")
def installation(db: None, slow: SlowHaproxy) -> Iterator[Installation]:
    """Four nodes with the agent's own pause between reloads, and a hundred customers."""
    with built(database_url()) as found, broker(found.redis_url):
        found.environment["PATH"] = f"{slow.path.parent}:{os.environ['PATH']}"
        for name in ("redis", *NODES, "worker", "schedule"):
            found.start(name)
        poison.open_https(found, actor_of("operator", Account.Kind.OPERATOR))
        poison.settle_in(found)
        poison.spread()
        wait_until(lambda: in_sync(found), "all nodes run what everybody has")
        yield found


def in_sync(installation: Installation) -> bool:
    """What was desired last runs on every node, as the nodes say themselves."""
    ids = Fleet.objects.values_list("pk", "desired_generation")
    if not all(selectors.is_live(pk, desired) for pk, desired in ids):
        return False
    return all(len({installation.digest(node) for node in nodes} - {""}) == 1 for nodes in FLEETS.values())


@pytest.fixture
def clean(installation: Installation, slow: SlowHaproxy) -> Iterator[Installation]:
    """As it was, after whatever was done."""
    yield installation
    slow.before("check", "")
    owner = Account.objects.get(name=poison.name_of(CULPRIT))
    print(
        *(
            f"{row} {row.state} {row.message} {row.created_at:%T.%f} {row.finished_at:%T.%f}"
            for row in Rollout.objects.all()[:6]
        ),
        sep="\n",
    )
    Certificate.objects.filter(account=owner).delete()
    Pool.objects.filter(account=owner).update(server_timeout_ms=30_000)
    for backend in Pool.objects.get(account=owner).backends.all():
        backend.servers.filter(name="bad").delete()
    Route.objects.filter(account__name__startswith="c").delete()
    Quarantine.objects.all().delete()
    poison.spread()
    wait_until(lambda: in_sync(installation), "it is all taken back")


@pytest.mark.parametrize(
    ("says", "how"), [("names the line", poison.NAMED), ("names nothing", poison.UNNAMED)], ids=["named", "unnamed"]
)
@pytest.mark.parametrize("kind", poison.KINDS)
def test_what_one_customer_wrote_and_haproxy_refuses_holds_up_nobody(
    clean: Installation, slow: SlowHaproxy, kind: str, says: str, how: str
) -> None:
    poisoned(clean, slow, kind, f"{kind} that HAProxy refuses; it {says}", how)


def test_what_one_customer_wrote_and_haproxy_crashes_on_holds_up_nobody(clean: Installation, slow: SlowHaproxy) -> None:
    poisoned(clean, slow, "pool", "pool on which HAProxy crashes by a signal", poison.CRASHES)


def test_a_check_that_was_merely_slow_is_made_again_without_another_change(
    clean: Installation, slow: SlowHaproxy
) -> None:
    with trial("3: haproxy -c takes longer than its limit on every node", "mutant:a-slow-check-is-a-refusal") as seen:
        path = f"round-{next(rounds)}"
        poison.everybody_adds_a_route(path)
        slow.before("check", "sleep 60")
        poison.spread()
        away = Step.objects.filter(state=StepState.UNREACHABLE, message__contains="did not finish")
        wait_until(away.exists, "a node says that it had no time")
        assert not Quarantine.objects.exists()
        slow.before("check", "")
        begun = time.monotonic()
        wait_until(poison.Visits(clean, path, ()).all_answered, "all are live by themselves")
        seen.saw(f"nobody is blamed, all 100 live {elapsed(begun):.1f} s after checks are quick again")


def poisoned(installation: Installation, slow: SlowHaproxy, kind: str, tried: str, how: str) -> None:
    """All customers write, one of them what HAProxy does not take."""
    with trial(f"1: {tried}, among {poison.CUSTOMERS} customers", CONTROL) as seen:
        path = f"round-{next(rounds)}"
        poison.everybody_adds_a_route(path)
        word, culprit = poison.KINDS[kind](poison.name_of(CULPRIT))
        by_itself = kind == "certificate" and how == poison.NAMED  # HAProxy refuses that one without our help
        slow.before("check", "" if by_itself else how.format(word=word))
        asked = len(slow.calls("check"))
        begun = time.monotonic()
        poison.spread()
        visits = poison.Visits(installation, path, {CULPRIT})
        wait_until(visits.all_answered, "the others are live")
        live = elapsed(begun)
        wait_until(lambda: Quarantine.objects.filter(object_id=culprit).exists(), "the culprit is named")
        named = elapsed(begun)
        seen.saw(f"{len(slow.calls('check')) - asked} checks on {len(NODES)} nodes")
        seen.took("99 others live on every node", live, OTHERS_LIVE_S)
        seen.took(f"{kind} of {poison.name_of(CULPRIT)} named", named, NAMED_S)
        wait_until(lambda: in_sync(installation), "the rollout of all the rest is done")
        labels = set(Quarantine.objects.values_list("label", flat=True))
        assert all(label.startswith(poison.name_of(CULPRIT)) for label in labels), labels
