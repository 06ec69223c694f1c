"""Listeners present the certificates of the accounts they serve, each for verified names only."""

from __future__ import annotations

import hashlib
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.compiler.compile import compile_snapshot
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Certificate
from apps.definitions.services import delete_object, save_object
from apps.fleet.models import Fleet
from tests.apps.test_definitions_services import pem_pair
from tests.apps.test_grant_services import answer, grant
from tests.e2e.rendered_proxy import running


def upload(actor: Actor, name: str, *names: str) -> Certificate:
    """A certificate of the actor's account."""
    chain, key = pem_pair(*names)
    row: Certificate = save_object(actor=actor, kind="Certificate", name=name, spec={"chain": chain, "key": key})
    return row


def route(actor: Actor, name: str, hostname: str, *, verified: bool = True) -> None:
    """A route of the actor's account, with its name verified."""
    save_object(actor=actor, kind="Route", name=name, spec=answer(hostname))
    if verified:
        Hostname.objects.filter(name=hostname).update(verification="dns")


@pytest.fixture
def house(tutorial_env: Actor) -> Certificate:
    """The operator's certificate, which the https listener of the tutorial's load balancer names."""
    row = upload(tutorial_env, "house", "console.spillway.example", "*.shared.example")
    listeners: list[dict[str, Any]] = [
        {"name": "http", "protocol": "http", "port": 8080},
        {"name": "https", "protocol": "https", "port": 8443, "certificates": ["house"]},
    ]
    spec = {"fleets": ["us-central1", "europe-west1"], "listeners": listeners}
    save_object(actor=tutorial_env, kind="LoadBalancer", name="front", spec=spec)
    return row


def presented() -> dict[str, set[str]]:
    """Label of a certificate → the names that it answers for, on the https listener."""
    snapshot = snapshot_of(Fleet.objects.get(name="us-central1"))
    listener = next(each for each in snapshot.load_balancers[0].listeners if each.label == "https")
    known = {each.id: each for each in snapshot.certificates}
    return {known[key].label: set(known[key].hostnames) for key in listener.certificate_ids}


HOUSE = {"operator/house": {"console.spillway.example", "*.shared.example"}}


def test_an_uploaded_certificate_is_presented_for_the_verified_names_of_its_account(house: Any, acme: Actor) -> None:
    route(acme, "verified", "a.acme-two.example")
    route(acme, "waiting", "b.acme-two.example", verified=False)
    assert presented() == HOUSE
    upload(acme, "own", "a.acme-two.example", "b.acme-two.example", "c.elsewhere.example")
    assert presented() == HOUSE | {"acme/own": {"a.acme-two.example"}}


def test_a_wildcard_certificate_answers_for_the_names_that_are_verified(house: Any, acme: Actor) -> None:
    route(acme, "one", "a.wild.example")
    row = upload(acme, "own", "*.wild.example")
    assert presented()["acme/own"] == {"a.wild.example"}
    Hostname.objects.create(name="*.wild.example", account=row.account, verification="dns")
    assert presented()["acme/own"] == {"*.wild.example"}


def test_a_certificate_for_the_name_of_somebody_else_is_never_presented(house: Any, acme: Actor, globex: Actor) -> None:
    route(acme, "victim", "victim.example")
    route(globex, "own", "globex-own.example")
    upload(globex, "evil", "victim.example", "globex-own.example")
    upload(globex, "worse", "*.victim.example")
    route(acme, "below", "below.victim.example")
    assert presented() == HOUSE | {"globex/evil": {"globex-own.example"}}


def test_an_account_without_a_route_on_the_load_balancer_presents_nothing(house: Any, acme: Actor) -> None:
    Hostname.objects.create(name="idle.example", account=acme.account, verification="dns")
    upload(acme, "own", "idle.example")
    assert "acme/own" in presented()  # the tutorial's routes are acme's
    for row in list(acme.account.route_set.all()):
        delete_object(actor=acme, kind="Route", name=row.name)
    assert presented() == HOUSE


def test_the_newest_certificate_answers_for_a_name_and_the_older_one_goes(house: Any, acme: Actor) -> None:
    route(acme, "one", "a.renew.example")
    upload(acme, "old", "a.renew.example")
    upload(acme, "new", "a.renew.example")
    assert presented() == HOUSE | {"acme/new": {"a.renew.example"}}


def test_the_operators_certificate_leaves_a_name_to_its_owner(house: Any, acme: Actor, tutorial_env: Actor) -> None:
    grant(tutorial_env, hostname="*.shared.example")
    Hostname.objects.create(name="*.shared.example", account=acme.account, verification="grant")
    save_object(actor=acme, kind="Route", name="shared", spec=answer("*.shared.example"))
    assert presented() == HOUSE
    upload(acme, "own", "*.shared.example")
    assert presented() == {"operator/house": {"console.spillway.example"}, "acme/own": {"*.shared.example"}}


def test_an_upload_asks_for_a_push_of_every_fleet_that_will_present_it(house: Any, acme: Actor) -> None:
    before = set(Fleet.objects.values_list("name", "desired_generation"))
    upload(acme, "own", "any.example")
    assert {(name, number + 1) for name, number in before} == set(
        Fleet.objects.values_list("name", "desired_generation")
    )


def fingerprint(port: int, name: str) -> str | None:
    """Of the certificate that is presented to who asks for the name; None where there is no handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=5) as raw,
            context.wrap_socket(raw, server_hostname=name) as secured,
        ):
            return hashlib.sha256(secured.getpeercert(binary_form=True) or b"").hexdigest()
    except ssl.SSLError:
        return None


def test_a_real_haproxy_presents_each_account_its_own(
    house: Certificate, acme: Actor, globex: Actor, tutorial_env: Actor, tmp_path: Path
) -> None:
    grant(tutorial_env, hostname="acme.shared.example")
    route(acme, "shared", "acme.shared.example")
    route(acme, "own", "acme-own.example")
    route(globex, "own", "globex-own.example")
    ours = upload(acme, "own", "acme-own.example", "acme.shared.example", "globex-own.example")
    theirs = upload(globex, "own", "globex-own.example", "acme-own.example", "*.shared.example")
    bundle = compile_snapshot(snapshot_of(Fleet.objects.get(name="us-central1"))).output
    listener = next(bind.listener_id for bind in bundle.binds if bind.protocol == "https")
    with running(bundle, tmp_path) as proxy:
        port = proxy.ports[listener]
        assert fingerprint(port, "acme-own.example") == ours.fingerprint
        assert fingerprint(port, "globex-own.example") == theirs.fingerprint
        assert fingerprint(port, "acme.shared.example") == ours.fingerprint
        assert fingerprint(port, "other.shared.example") == house.fingerprint
        assert fingerprint(port, "console.spillway.example") == house.fingerprint
        assert fingerprint(port, "nobody.example.org") is None
