"""What nodes say is put into people's words, and names of one customer are told to no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.definitions.models import Certificate, Listener, LoadBalancer, Pool, Route, Server
from apps.definitions.previewing import node_words
from apps.definitions.previewing.node_words import in_words
from apps.definitions.services import save_object
from apps.drivers.proxy.contract import Refused
from apps.observe.collect.readings import Reading
from apps.observe.evaluate.evaluator import ConditionEvaluator
from apps.observe.models import NodeReport
from apps.observe.services import report_of
from apps.rollouts.models import Quarantine, Rollout, Step
from tests.apps.pushed import APPLIED, Env, put_env
from tests.apps.test_definitions_services import pem_pair
from tests.said import unsaid

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(db: None) -> Env:
    """A fleet, and a certificate."""
    found = put_env(APPLIED)
    chain, key = pem_pair("www.example.org")
    save_object(actor=found.operator, kind="Certificate", name="site", spec={"chain": chain, "key": key})
    return found


def said(account: str = "") -> dict[str, str]:
    """What becomes of words of HAProxy and of our agent."""
    pool, server, route = Pool.objects.get(name="blue").pk, Server.objects.earliest("pk").pk, Route.objects.get().pk
    listener, front = Listener.objects.get().pk, LoadBalancer.objects.get().pk
    certificate = Certificate.objects.get().pk
    texts = {
        "certificate": f"[haproxy.cfg:290] : unable to load chain into SSL Context 'certs/crt-{certificate}.pem'.",
        "list": f"error processing line 1 in file 'certs/lst-{listener}.list'",
        "server": f"'server pool-{pool}/srv-{server}' : unknown keyword",
        "pool": f"backend 'pool-{pool}' has no server available!",
        "route": f"route-{route} is odd",
        "map": f"maps/lb-{front}-exact.map was edited",
        "listener": f"lst-{listener}: port 80 on 0.0.0.0 is taken.",
        "gone": "pool-9/srv-987654321: gone",
    }
    return {name: in_words(text, account) for name, text in texts.items()}


def test_what_nodes_say_names_things_as_people_do(env: Env) -> None:
    assert said() == {
        "certificate": "[haproxy.cfg:290] : unable to load chain into SSL Context 'certificate operator/site'.",
        "list": "error processing line 1 in file 'the certificates of listener http of front'",
        "server": "'server s1 of blue' : unknown keyword",
        "pool": "backend 'pool operator/blue' has no server available!",
        "route": "route operator/home is odd",
        "map": "a map of load balancer front was edited",
        "listener": "listener http of front: port 80 on 0.0.0.0 is taken.",
        "gone": "another server: gone",
    }
    assert unsaid(list(said().values())) == []


def test_another_accounts_names_are_not_told(env: Env) -> None:
    found = said("acme")
    assert [found[name] for name in ("route", "pool")] == [
        "another route is odd",
        "backend 'another pool' has no server available!",
    ]
    assert "site" not in found["certificate"]
    assert "s1" not in found["server"]


@pytest.mark.parametrize("text", ["pool-1.example.com", "/pool-1/x", "acme/pool-1", "my-pool-1", "pool-1-b", "pool-x"])
def test_text_of_people_that_looks_like_an_id_stays(env: Env, text: str) -> None:
    assert in_words(text) == text


def refusing(env: Env) -> None:
    """Every node says no in words of its own to what changes next, and HAProxy names a pool and a listener."""
    line, listener = env.line_of_pool("blue"), Listener.objects.get().pk
    said = f"[haproxy.cfg:{line}] : 'pool-{Pool.objects.get(name='blue').pk}' as lst-{listener} knows it is wrong."
    refusal = Refused(f"HAProxy rejects the file: {said}", stage="validate", line=line, output=f"[ALERT] (7) : {said}")
    for node in env.memory:
        node.refusal_for = lambda bundle: refusal if b"balance roundrobin" in bundle.files["haproxy.cfg"] else None


def texts_of_a_refusal(env: Env) -> list[str]:
    """What stands in rollouts, steps and the quarantine after it."""
    env.reconcile()
    refusing(env)
    env.change_pool("blue", "roundrobin")
    env.reconcile()
    refused = Rollout.objects.filter(state="failed") | Rollout.objects.exclude(object_label="")
    texts = [text for row in refused for text in (row.message, row.object_label)]
    texts += Step.objects.exclude(message="").values_list("message", flat=True)
    return [*texts, Quarantine.objects.get().message]


def test_what_is_written_down_of_a_refusal_has_no_id_of_ours(env: Env) -> None:
    texts = texts_of_a_refusal(env)
    assert any("pool operator/blue" in text for text in texts)
    assert unsaid(texts) == []


@pytest.mark.exhaustive
def test_control_without_translation_ids_are_found(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_words, "_label", lambda found, _: found[0])
    assert {"lst-1", "pool-1"} <= {text.partition("-")[0] + "-1" for text in unsaid(texts_of_a_refusal(env))}


def test_reports_and_conditions_of_a_node_have_no_id_of_ours(env: Env) -> None:
    env.reconcile()
    report = NodeReport.objects.select_related("node").earliest("pk")
    said = "lst-1: not ours on port 80"
    state = replace(env.memory[0].state(), drift=("certs/crt-1.pem was edited",), last_error=said, unavailable=said)
    instant = report.seen_at
    assert instant is not None
    found = report_of(report.node_id, state, instant)
    readings = [
        Reading(report.node_id, instant, instant, state),
        Reading(report.node_id, instant, instant, error="lst-1"),
    ]
    texts = [found.error, *found.drift]
    for reading in readings:
        verdicts = ConditionEvaluator().evaluate({report.node_id: report.node}, {report.node_id: reading}, instant)
        texts += [verdict.message for verdict in verdicts]
    assert sum("listener" in text or "certificate" in text for text in texts) >= 4
    assert unsaid(texts) == []
