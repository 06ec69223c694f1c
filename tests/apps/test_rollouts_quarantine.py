"""What nodes refuse of one customer is found, left out and named; everybody else goes live in the same try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.accounts.models import Account, Hostname
from apps.audit.models import Entry
from apps.compiler.bundle import Bundle
from apps.core.clock import now
from apps.definitions.models import Certificate, LoadBalancer, Pool, Route, RoutePool
from apps.definitions.services import save_object
from apps.drivers.proxy.contract import ProxyError, Refused, Unreachable
from apps.fleet.models import Region
from apps.fleet.services import request_push
from apps.observe.models import NodeReport
from apps.rollouts import selectors, services
from apps.rollouts.culprits import quarantine
from apps.rollouts.culprits import search as culprits
from apps.rollouts.models import FleetSync, Quarantine, Rollout, Step
from apps.rollouts.push import reconciling
from apps.rollouts.push.repairs import FIRST_PAUSE
from apps.webhooks.events import type_of
from tests.apps.pushed import Env, add_route, pool_spec, put_env, remembered, remove_object
from tests.apps.test_definitions_services import pem_pair
from tests.conftest import actor_of
from tests.interfaces.api.test_api_objects import Api
from tests.interfaces.people import client_of
from tests.poisoned import poison_answer, poison_pool, poison_route

CUSTOMERS = 100
NO = Refused("no", stage="switch")
RefusalFor = Callable[[Bundle], ProxyError | None]


def with_https(env: Env) -> None:
    """A listener with a certificate of the operator's, and a hundred customers with a route and a pool each."""
    chain, key = pem_pair("www.example.org")
    save_object(actor=env.operator, kind="Certificate", name="site", spec={"chain": chain, "key": key})
    listeners = [
        {"name": "http", "protocol": "http", "port": 8080},
        {"name": "https", "protocol": "https", "port": 8443, "certificates": ["site"]},
    ]
    save_object(
        actor=env.operator, kind="LoadBalancer", name="front", spec={"fleets": ["here"], "listeners": listeners}
    )
    for number in range(CUSTOMERS):
        actor_of(customer(number), Account.Kind.CUSTOMER)
    env.reconcile()


def customer(number: int) -> str:
    """The name of one of the customers."""
    return f"c{number:03}"


ENV = remembered(with_https)


@pytest.fixture
def env(db: None) -> Env:
    """Nodes that run what all of the customers have, which is nothing yet."""
    return put_env(ENV)


def everybody_writes(env: Env, many: int = 5) -> None:
    """So many customers add a pool and a route each, in one go."""
    front = LoadBalancer.objects.get()
    owners = list(Account.objects.filter(kind=Account.Kind.CUSTOMER).order_by("name")[:many])
    names = [Hostname(name=f"{owner.name}.example", account=owner, verification="dns") for owner in owners]
    Hostname.objects.bulk_create(names)
    pools = [Pool(name="shop", account=owner, protocol="http", balance="leastconn") for owner in owners]
    Pool.objects.bulk_create(pools)
    routes = [
        Route(name="shop", account=each.account, load_balancer=front, hostname=each, path="/", action="pools")
        for each in names
    ]
    Route.objects.bulk_create(routes)
    shares = [RoutePool(route=route, pool=pool, weight=1) for route, pool in zip(routes, pools, strict=True)]
    RoutePool.objects.bulk_create(shares)
    request_push([env.fleet])


def refuses(*words: str, names: bool, stage: str = "trial_run") -> RefusalFor:
    """What a node says of a bundle with one of these words in any of its files; HAProxy names the place or does not."""

    def refusal_for(bundle: Bundle) -> Refused | None:
        for path, content in bundle.files.items():
            for word in words:
                if path != "manifest.json" and word.encode() in content:
                    return _refused(bundle, path, word, content) if names else Refused("no", stage=stage)
        return None

    return refusal_for


def _refused(bundle: Bundle, path: str, word: str, content: bytes) -> Refused:
    lines = content.decode().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if word in text)
    if path == "haproxy.cfg":
        said = f"config : parsing [haproxy.cfg:{line}] : unknown keyword '{word}'."
    elif path.startswith("maps/"):
        said = f"config : parsing [haproxy.cfg:1] : invalid value at line {line} of file <{path}>."
    else:
        where = next(number for number, who in bundle.line_owners.items() if who.startswith("lst-"))
        said = f"config : parsing [haproxy.cfg:{where}] : 'bind' : unable to load SSL certificate '{path}'."
    return Refused(f"HAProxy rejects the file: {said}", stage="validate", line=line, output=f"[ALERT]  (7) : {said}\n")


def poison_server(owner: str) -> tuple[str, str]:
    """An address that nodes are to refuse."""
    row = Pool.objects.get(account__name=owner)
    backend = row.backends.create(account=row.account, region=Region.objects.get())
    server = backend.servers.create(account=row.account, name="s", address="10.66.6.6", port=80)
    return "10.66.6.6", f"srv-{server.pk}"


def poison_certificate(owner: str) -> tuple[str, str]:
    """A certificate that nodes are to refuse."""
    chain, key = pem_pair(f"{owner}.example")
    actor = actor_of(owner, Account.Kind.CUSTOMER)
    row: Certificate = save_object(actor=actor, kind="Certificate", name="bad", spec={"chain": chain, "key": key})
    return chain.splitlines()[-3], f"crt-{row.pk}"


KINDS = [poison_route, poison_answer, poison_pool, poison_server, poison_certificate]


def set_refusals(env: Env, refusal_for: RefusalFor | None) -> None:
    for node in env.memory:
        node.refusal_for = refusal_for


def served(env: Env) -> set[str]:
    """Hostnames that have a route on every node."""
    maps = [node.files[path].decode() for node in env.memory for path in node.files if path.endswith("-prefix.map")]
    return set.intersection(*({line.partition("/")[0] for line in text.splitlines()} for text in maps))


@pytest.mark.slow(reason="compiles for a hundred customers up to ten times")
@pytest.mark.parametrize("names", [True, pytest.param(False, marks=pytest.mark.exhaustive)], ids=["named", "halved"])
@pytest.mark.parametrize("poison", KINDS, ids=lambda poison: poison.__name__)
def test_one_poison_object_among_a_hundred_customers_is_named_and_all_others_are_live_in_the_same_round(
    env: Env, poison: Any, names: bool
) -> None:
    everybody_writes(env, CUSTOMERS)
    word, object_id = poison(customer(42))
    set_refusals(env, refuses(word, names=names))
    env.reconcile()
    assert [row.object_id for row in Quarantine.objects.all()] == [object_id]
    assert served(env) >= {f"{customer(number)}.example" for number in range(CUSTOMERS) if number != 42}
    assert (Rollout.objects.latest("id").state, selectors.is_live(env.fleet.pk, env.desired())) == ("done", True)
    refused = Rollout.objects.filter(state="rolled_back").latest("id")
    assert customer(42) in refused.object_label
    assert "operator" not in refused.object_label
    assert len({node.digest for node in env.memory}) == 1
    entry = Entry.objects.get(action="quarantine")
    assert (entry.account.name, entry.object_id) == (customer(42), int(object_id.partition("-")[2]))


def test_what_nobody_names_is_found_by_halving(env: Env) -> None:
    for number in range(4):
        add_route(env.operator, f"r{number}", f"/r{number}")
    word, object_id = ".org/r2", f"route-{Route.objects.get(name='r2').pk}"
    set_refusals(env, refuses(word, names=False))
    env.reconcile()
    row = Quarantine.objects.get()
    assert (row.object_id, row.message) == (object_id, culprits.NOT_NAMED)
    assert Rollout.objects.latest("id").state == "done"


@pytest.mark.parametrize(("stage", "runs"), [("trial_run", 0), ("switch", 1)])
def test_a_node_is_asked_by_a_check_where_that_tells_and_by_a_push_where_only_that_does(
    env: Env, stage: str, runs: int
) -> None:
    for number in range(4):
        add_route(env.operator, f"r{number}", f"/r{number}")
    pushes = [node.pushes for node in env.memory]
    set_refusals(env, refuses(".org/r2", names=False, stage=stage))
    env.reconcile()
    assert Quarantine.objects.get().label == "operator/r2"
    assert Rollout.objects.latest("id").state == "done"
    assert any(node.checks for node in env.memory) is not bool(runs)
    assert any(node.pushes > before + 1 for node, before in zip(env.memory, pushes, strict=True)) is bool(runs)


def test_without_the_search_one_object_holds_up_everybody(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    everybody_writes(env)
    word, _ = poison_pool(customer(2))
    set_refusals(env, refuses(word, names=True))
    monkeypatch.setattr(reconciling, "find_culprits", lambda *_: None)
    env.reconcile()
    assert served(env) == {"www.example.org"}
    assert Rollout.objects.latest("id").state == "rolled_back"


def poison_blue(env: Env) -> None:
    """A pool that ran well and was changed to what nodes refuse."""
    set_refusals(env, refuses("roundrobin", names=True))
    env.change_pool("blue", "roundrobin")
    env.reconcile()


POISONED = remembered(poison_blue, ENV)


@pytest.fixture
def poisoned(db: None) -> Env:
    """The pool is in quarantine."""
    return put_env(POISONED)


def test_what_ran_before_its_owner_changed_it_goes_on_as_it_was(poisoned: Env) -> None:
    assert Quarantine.objects.get().label == "operator/blue"
    assert selectors.is_live(poisoned.fleet.pk, poisoned.desired())
    assert selectors.sync_statuses(poisoned.operator) == {poisoned.fleet.pk: "in_sync"}
    add_route(poisoned.operator, "news", "/news")
    poisoned.reconcile()
    assert Rollout.objects.latest("id").state == "done"
    assert all(b"balance leastconn" in node.files["haproxy.cfg"] for node in poisoned.memory)
    assert Rollout.objects.latest("id").revision.quarantined[0]["label"] == "operator/blue"


@pytest.mark.slow(reason="asks the API and pages as three callers")
def test_its_owner_reads_of_it_in_the_api_on_its_page_and_in_the_events_and_nobody_else_does(env: Env) -> None:
    everybody_writes(env)
    word, _ = poison_server(customer(2))
    set_refusals(env, refuses(word, names=True))
    env.reconcile()
    pool = Pool.objects.get(account__name=customer(2))
    Pool.objects.filter(pk=pool.pk).update(tags={"shared": "yes"})
    owner, operator = actor_of(customer(2), Account.Kind.CUSTOMER), env.operator
    for actor in (owner, operator):
        found = Api(actor)("GET", f"pools/{pool.pk}").json()["conditions"]
        assert [(each["type"], each["status"], each["reason"], each["fleet"], each["object"]) for each in found] == [
            ("Accepted", False, "refused_by_node", "here", f"{customer(2)}/shop/s")
        ]
        assert found[0]["message"] == "HAProxy rejects this: unknown keyword '10.66.6.6'."
        assert "Not live on fleet here" in client_of(actor).get(f"/pools/{pool.pk}").content.decode()
    listed = Api(operator)("GET", "pools").json()["items"]
    assert [each["name"] for each in listed if each["conditions"]] == ["shop"]
    other = actor_of(customer(3), Account.Kind.CUSTOMER)
    assert not any(each["conditions"] for each in Api(other)("GET", "pools").json()["items"])
    entry = Entry.objects.get(action="quarantine")
    assert (type_of(entry), entry.account) == ("server.quarantined", owner.account)


@pytest.mark.slow(reason="renders the page of a route")
@pytest.mark.parametrize(
    ("kind", "poison", "page"),
    [("certificates", poison_certificate, "/certificates"), ("routes", poison_answer, "/routes/{}")],
)
def test_a_route_or_certificate_that_nodes_refuse_is_not_called_live(
    env: Env, kind: str, poison: Any, page: str
) -> None:
    everybody_writes(env)
    word, object_id = poison(customer(2))
    set_refusals(env, refuses(word, names=True))
    env.reconcile()
    owner, pk = actor_of(customer(2), Account.Kind.CUSTOMER), object_id.partition("-")[2]
    assert [each["fleet"] for each in Api(owner)("GET", f"{kind}/{pk}").json()["conditions"]] == ["here"]
    text = client_of(owner).get(page.format(pk)).content.decode()
    assert "Not live on fleet here" in text
    assert "Live on 1 of 1" not in text


def test_it_is_tried_again_when_its_content_changes(poisoned: Env) -> None:
    poisoned.change_pool("blue", "source")
    poisoned.reconcile()
    assert not Quarantine.objects.exists()
    assert b"balance source" in poisoned.memory[0].files["haproxy.cfg"]


def test_it_is_tried_again_when_the_nodes_report_another_haproxy(poisoned: Env) -> None:
    set_refusals(poisoned, None)
    NodeReport.objects.update(seen_at=now())
    assert services.fleets_to_sweep() == []
    NodeReport.objects.update(haproxy_version="3.0.1")
    assert services.fleets_to_sweep() == [poisoned.fleet.pk]
    poisoned.reconcile()
    assert not Quarantine.objects.exists()
    assert b"balance roundrobin" in poisoned.memory[1].files["haproxy.cfg"]


def test_it_is_tried_again_when_an_operator_asks(poisoned: Env) -> None:
    set_refusals(poisoned, None)
    request_push([poisoned.fleet])
    poisoned.reconcile()
    assert Quarantine.objects.exists()
    services.push_again(actor=poisoned.operator, fleet_id=poisoned.fleet.pk)
    entry = Entry.objects.get(action="push_again")
    assert entry.before
    assert entry.before["quarantined"] == ["operator/blue"]
    poisoned.reconcile()
    assert not Quarantine.objects.exists()
    assert b"balance roundrobin" in poisoned.memory[1].files["haproxy.cfg"]


@pytest.mark.slow(reason="compiles again for each of three objects")
def test_several_poison_objects_are_all_found(env: Env) -> None:
    everybody_writes(env)
    words, ids = zip(*(poison_pool(customer(1)), poison_answer(customer(2)), poison_server(customer(4))), strict=True)
    set_refusals(env, refuses(*words, names=True))
    env.reconcile()
    assert {row.object_id for row in Quarantine.objects.all()} == set(ids)
    assert Rollout.objects.latest("id").state == "done"


@pytest.mark.slow(reason="asks a node about each of a dozen objects")
def test_a_customer_who_does_it_again_and_again_is_left_out_with_all_that_changed(env: Env) -> None:
    everybody_writes(env)
    owner = Account.objects.get(name=customer(3))
    pools = [Pool(name=f"p{number}", account=owner, protocol="http", balance="random") for number in range(12)]
    Pool.objects.bulk_create(pools)
    for pool in pools:
        pool.backends.create(account=owner, region=Region.objects.get())
    set_refusals(env, refuses("balance random", names=False))
    env.reconcile()
    assert Quarantine.objects.filter(label__startswith=customer(3)).count() >= len(pools)
    assert {row.label.partition("/")[0] for row in Quarantine.objects.all()} == {customer(3)}
    assert Rollout.objects.latest("id").state == "done"
    assert Rollout.objects.filter(state__in=("failed", "rolled_back")).count() <= quarantine.MOST_OF_ACCOUNT + 2


def test_what_was_changed_with_the_refused_object_does_not_wait(env: Env) -> None:
    set_refusals(env, refuses(".org/r1", names=True))
    add_route(env.operator, "r1", "/r1")
    add_route(env.operator, "r2", "/r2")
    env.reconcile()
    assert Rollout.objects.latest("id").state == "done"
    assert Rollout.objects.filter(state="done").count() == 2
    assert [each["code"] for each in FleetSync.objects.get().left_out] == ["refused_by_node"]


def test_a_route_that_goes_on_as_it_was_keeps_its_pool(env: Env) -> None:
    save_object(actor=env.operator, kind="Pool", name="old", spec=pool_spec())
    add_route(env.operator, "shop", "/shop", "old")
    env.reconcile()
    old = Pool.objects.get(name="old")
    set_refusals(env, refuses("/poison", names=True))
    add_route(env.operator, "shop", "/poison", "green")
    remove_object(env.operator, "Pool", "old")
    env.reconcile()
    assert Quarantine.objects.get().label == "operator/shop"
    maps = [text.decode() for path, text in env.memory[0].files.items() if path.endswith("-prefix.map")]
    assert any(f"/shop/ pool-{old.pk}" in text or "/shop" in text for text in maps)
    assert all(f"backend pool-{old.pk} " in node.files["haproxy.cfg"].decode() for node in env.memory)


def test_nothing_of_the_operators_is_left_out_for_a_nodes_own_trouble(env: Env) -> None:
    everybody_writes(env)
    before = env.memory[1].digest
    env.memory[1].refusal = Refused("Port 8080 is in use by another program.", stage="switch")
    env.reconcile()
    assert not Quarantine.objects.exists()
    assert (Rollout.objects.latest("id").state, env.memory[0].digest, env.memory[1].digest) == (
        "rolled_back",
        before,
        before,
    )
    assert FleetSync.objects.get().refused_digest


def test_a_node_that_changes_its_mind_ends_in_the_last_good_revision_and_in_no_loop(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    everybody_writes(env)
    env.memory[1].refusal = Refused("no", stage="switch")
    monkeypatch.setattr(culprits._Search, "_ask", lambda self, out: None if len(out) == len(self._suspects) else NO)
    env.reconcile()
    assert Rollout.objects.count() < 2 * 5 * 2
    assert (Rollout.objects.latest("id").state, env.memory[0].digest) == ("rolled_back", env.memory[1].digest)


def test_the_only_certificate_of_a_listener_is_named_and_not_taken_from_it(env: Env) -> None:
    chain, key = pem_pair("www.example.org")
    listeners = [{"name": "other", "protocol": "https", "port": 9443, "certificates": ["next"]}]
    save_object(actor=env.operator, kind="Certificate", name="next", spec={"chain": chain, "key": key})
    set_refusals(env, refuses(chain.splitlines()[-3], names=True))
    spec = {"fleets": ["here"], "listeners": listeners}
    save_object(actor=env.operator, kind="LoadBalancer", name="second", spec=spec)
    env.reconcile()
    rollout = Rollout.objects.latest("id")
    assert (rollout.state, rollout.object_label) == ("rolled_back", "certificate operator/next")
    assert not Quarantine.objects.exists()


def test_a_certificate_that_was_renewed_badly_goes_on_as_it_was(env: Env) -> None:
    before = Certificate.objects.get().chain_pem
    chain, key = pem_pair("www.example.org")
    set_refusals(env, refuses(chain.splitlines()[-3], names=True))
    save_object(actor=env.operator, kind="Certificate", name="site", spec={"chain": chain, "key": key})
    add_route(env.operator, "news", "/news")
    env.reconcile()
    assert Quarantine.objects.get().label == "operator/site"
    path = f"certs/crt-{Certificate.objects.get().pk}.pem"
    assert all(node.files[path].decode().startswith(before) for node in env.memory)
    assert Rollout.objects.latest("id").state == "done"


def test_the_search_gives_up_when_the_node_cannot_be_asked(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    everybody_writes(env)
    monkeypatch.setattr(culprits, "MOST_TRIES", 2)
    word, _ = poison_pool(customer(2))
    set_refusals(env, refuses(word, names=False))
    env.reconcile()
    assert not Quarantine.objects.exists()
    assert Rollout.objects.latest("id").state == "rolled_back"


def test_a_time_out_is_no_refusal_and_is_tried_again_with_growing_pauses(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def slow(bundle: Bundle) -> ProxyError:
        asked.append(bundle.digest)
        return Unreachable("n2: haproxy -c did not come to an end in time.")

    everybody_writes(env)
    env.memory[1].refusal_for = slow
    env.reconcile()
    step = Step.objects.get(node__name="n2", rollout=Rollout.objects.latest("id"))
    assert (step.state, step.rollout.state) == ("unreachable", "pushing")
    assert FleetSync.objects.get().refused_digest == ""
    for _ in range(3):
        env.reconcile()
    assert len(asked) == 2, "once more at once, then it is left alone for a while"
    Step.objects.filter(pk=step.pk).update(finished_at=now() - FIRST_PAUSE)
    env.reconcile()
    assert len(asked) == 3
    Step.objects.filter(pk=step.pk).update(finished_at=now() - FIRST_PAUSE)
    env.reconcile()
    assert len(asked) == 3, "the second pause is longer"
    monkeypatch.setattr(reconciling, "may_try_again", lambda _: True)
    env.memory[1].refusal_for = None
    env.reconcile()
    assert Rollout.objects.latest("id").state == "done"
    assert env.memory[0].digest == env.memory[1].digest


def test_a_worker_that_dies_while_it_searches_is_replaced_by_one_that_asks_again(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    everybody_writes(env)
    word, object_id = poison_pool(customer(2))
    set_refusals(env, refuses(word, names=True))
    with monkeypatch.context() as dying:
        dying.setattr(reconciling, "find_culprits", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            services.reconcile_fleet(fleet_id=env.fleet.pk)
    assert Rollout.objects.latest("id").state == "pushing"
    assert services.fleets_to_sweep() == [env.fleet.pk]
    env.reconcile()
    assert [row.object_id for row in Quarantine.objects.all()] == [object_id]
    assert Rollout.objects.latest("id").state == "done"
