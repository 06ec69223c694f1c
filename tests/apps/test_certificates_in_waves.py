"""An order of a certificate does not wait for waves: nodes answer its challenges at once."""

from __future__ import annotations

import pytest

from apps.core.clock import now
from apps.definitions.issuing.orders import HTTP
from apps.definitions.models import CertificateOrder
from apps.definitions.services import save_object
from apps.fleet.services import request_push
from apps.issuing import proving
from apps.observe.models import NodeReport
from apps.rollouts.models import FleetSync, Rollout
from tests.apps.pushed import Env, begin_now, put_env, remembered
from tests.apps.test_rollout_waves import NAMES, WAVES, change, pass_wave

HOST, ANSWER = "www.example.org", "token-of-the-order.thumbprint"


def with_an_authority(env: Env) -> None:
    """A fleet with an authority, on one node of which a change is watched."""
    spec = {"directory_url": "https://127.0.0.1:1/directory"}
    save_object(actor=env.operator, kind="CertificateAuthority", name="ca", spec=spec)
    env.reconcile()
    for _ in range(2):
        pass_wave(env)
    change(env)
    assert Rollout.objects.latest("id").state == "soaking"


AUTHORITY = remembered(with_an_authority, WAVES)


@pytest.fixture
def env(db: None) -> Env:
    """The change has been watched since a moment ago."""
    found = put_env(AUTHORITY)
    begin_now(Rollout.objects.latest("id"))
    return found


def order(env: Env) -> CertificateOrder:
    """One that waits until nodes answer, as services.py begins it."""
    spec = {"automatic": {"hostnames": [HOST]}}
    row = save_object(actor=env.operator, kind="Certificate", name="auto", spec=spec)
    request_push([env.fleet])
    challenge = {"hostname": HOST, "kind": HTTP, "token": "token-of-the-order", "answer": ANSWER}
    CertificateOrder.objects.filter(certificate=row).update(
        state=CertificateOrder.State.ANSWERING,
        hostnames=[HOST],
        challenges=[challenge],
        pushes={"fleets": {str(env.fleet.pk): env.desired()}, "zones": {}},
        began_at=now(),
    )
    return CertificateOrder.objects.get()


def answering(env: Env) -> list[str]:
    """Names of the nodes that have the answer."""
    return [name for name in NAMES if ANSWER.encode() in b"".join(env.node(name).files.values())]


def test_an_order_goes_on_when_nodes_answer_although_a_change_is_in_waves(env: Env) -> None:
    row = order(env)
    assert proving.unanswered(row)
    env.reconcile()
    assert answering(env) == list(NAMES)
    assert Rollout.objects.latest("id").state == "soaking"
    assert FleetSync.objects.get(fleet=env.fleet).compiled_generation < row.pushes["fleets"][str(env.fleet.pk)]
    assert proving.unanswered(row) == ""


def test_a_node_without_the_answer_is_waited_for(env: Env) -> None:
    env.node("n3").unavailable = "The disk is full."
    row = order(env)
    env.reconcile()
    assert answering(env) == ["n1", "n2", "n4"]
    assert proving.unanswered(row) == "Not every node of fleet here has the answers."


def test_a_node_that_nobody_reaches_is_not_waited_for_long(env: Env) -> None:
    env.node("n3").unreachable = True
    NodeReport.objects.filter(node__name="n3").update(last_contact_error="no route to host")
    row = order(env)
    env.reconcile()
    assert proving.unanswered(row)
    row.began_at = now() - 2 * proving.PATIENCE_WITH_NODES
    assert proving.unanswered(row) == ""
