"""Revocation lists that end: who is told when, and what to do; afterwards HAProxy accepts nobody of the authority."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Listener, LoadBalancer
from apps.definitions.services import save_object
from apps.definitions.values.authorities import terms_of_revocation_lists
from apps.observe.collect import lease
from apps.observe.evaluate import identity
from apps.observe.evaluate.conditions import Reason
from apps.observe.models import Condition
from apps.observe.selectors import problems
from apps.observe.services import forget_verdicts, store_verdicts
from tests.authorities import Authority
from tests.interfaces.people import client_of

A, B = Authority("Authority A"), Authority('Authority <b>"B"')


def verify(operator: Actor, *entries: dict[str, Any]) -> LoadBalancer:
    """The tutorial's load balancer with a listener that verifies clients like this."""
    certificate = {"chain": A.signed("a.example"), "key": ""}
    chain, key = certificate["chain"].split("-----BEGIN PRIVATE", 1)
    save_object(
        actor=operator, kind="Certificate", name="house", spec={"chain": chain, "key": f"-----BEGIN PRIVATE{key}"}
    )
    listeners = [
        {
            "name": "web",
            "protocol": "https",
            "port": 8443,
            "certificates": ["house"],
            "client_certificates": list(entries),
        }
    ]
    spec = {"fleets": ["us-central1"], "listeners": listeners}
    save_object(actor=operator, kind="LoadBalancer", name="edge", spec=spec)
    return LoadBalancer.objects.get(name="edge")


def entry(crl: str, authority: Authority = A) -> dict[str, Any]:
    return {"mode": "required", "ca": authority.pem, "crl": crl}


def told(actor: Actor, instant: datetime) -> list[tuple[int, str]]:
    """What pages say after a turn of the collector."""
    store_verdicts(identity.evaluate_all(instant), instant)
    return [(each.severity, each.sentence) for each in problems(actor) if each.kind == "load_balancer"]


def test_operators_are_warned_before_a_list_ends_and_told_when_it_has(tutorial_env: Actor, acme: Actor) -> None:
    lease.share("collector")
    crl = A.revoked(days=27)  # of a list of 36 days a quarter is nine, and a week is the most
    ((_, begin, end),) = terms_of_revocation_lists(crl)
    assert end - begin == timedelta(days=36)
    verify(tutorial_env, entry(crl))
    assert told(tutorial_env, end - timedelta(days=7, minutes=1)) == []
    ((severity, said),) = told(tutorial_env, end - timedelta(days=7))
    assert severity == 2
    assert said.startswith("Load balancer edge will reject clients soon. The revocation list of CN=Authority A ends on")
    assert f"{end:%Y-%m-%d %H:%M} UTC; then listener web accepts none of its clients. Get the authority's new" in said
    assert told(acme, end - timedelta(days=7)) == []
    ((severity, said),) = told(tutorial_env, end)
    assert (severity, "Load balancer edge rejects clients." in said, "ended on" in said) == (1, True, True)
    save_object(
        actor=tutorial_env,
        kind="LoadBalancer",
        name="edge",
        spec={"fleets": ["us-central1"], "listeners": [{"name": "plain", "protocol": "http", "port": 8090}]},
    )
    forget_verdicts("load_balancer", identity.existing()["load_balancer"])
    assert told(tutorial_env, end) == []
    assert not Condition.objects.filter(object_kind="load_balancer").exists()


@pytest.mark.parametrize(("days", "hours"), [(-8, 6.0), (27, 168.0), (360, 168.0)])
def test_a_short_list_is_warned_of_later_than_a_long_one(days: int, hours: float) -> None:
    crl = A.revoked(days=days)
    ((_, begin, end),) = terms_of_revocation_lists(crl)
    listener = Listener(name="web", client_certificates=[entry(crl)])
    at = end - timedelta(hours=hours)
    assert [each.ended for each in identity.ending_lists([listener], at)] == [False]
    assert identity.ending_lists([listener], at - timedelta(seconds=1)) == []
    assert [each.ended for each in identity.ending_lists([listener], end)] == [True]
    assert begin < end


def test_the_page_of_the_load_balancer_says_it_and_quotes_no_name_as_markup(tutorial_env: Actor, acme: Actor) -> None:
    crls = A.revoked(days=300) + B.revoked(days=-1)
    row = verify(
        tutorial_env,
        {"mode": "optional", "ca": A.pem + B.pem, "crl": crls},
    )
    page = client_of(tutorial_env).get(f"/load-balancers/{row.pk}").content.decode()
    assert "A revocation list has ended." in page
    assert "&lt;b" in page
    assert "<b>" not in page
    assert "CN=Authority A" not in page
    assert "revocation list" not in client_of(acme).get(f"/load-balancers/{row.pk}").content.decode()


def test_entries_without_a_list_and_listeners_that_verify_nobody_say_nothing(tutorial_env: Actor) -> None:
    row = verify(tutorial_env, {"mode": "required", "ca": A.pem})
    far = datetime(2200, 1, 1, tzinfo=UTC)
    (verdict,) = identity.evaluate_all(far)
    assert (verdict.object_id, verdict.status, verdict.reason) == (row.pk, True, Reason.REVOCATION_LISTS_CURRENT)
    assert identity.ending_lists([Listener(name="a", client_certificates=None)], far) == []
    assert now() < far
