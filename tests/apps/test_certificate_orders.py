"""Automatic certificates without an authority: what may be named, what is missing, what nodes and zones get."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.compiler.model.fleet import Challenge
from apps.core.clock import now
from apps.core.concurrency import leases
from apps.core.errors import FieldError, Invalid
from apps.core.outbound import Answer
from apps.core.secrets.sealing import seal
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.freezing.zone_records import freeze_zone
from apps.definitions.issuing.orders import DNS, HTTP, in_words
from apps.definitions.models import Certificate, CertificateAuthority, CertificateOrder, Zone
from apps.definitions.reading.describing import describe
from apps.definitions.services import delete_object, save_object
from apps.fleet.models import Fleet
from apps.issuing import asking, proving, services
from tests.authorities import Authority
from tests.e2e.name_server import NameServer, name_server

pytestmark = pytest.mark.django_db

DIRECTORY = "https://127.0.0.1:1/directory"  # where nobody listens
HOST = "shop.acme.example"


def order(actor: Actor, *hostnames: str, name: str = "auto") -> Certificate:
    """An automatic certificate, stored."""
    spec = {"automatic": {"hostnames": list(hostnames)}}
    row: Certificate = save_object(actor=actor, kind="Certificate", name=name, spec=spec)
    return row


def brought() -> dict[str, Any]:
    """A chain of the host and its key, as somebody brings them."""
    chain, begin, key = Authority().signed(HOST, days=90).partition("-----BEGIN PRIVATE KEY")
    return {"chain": chain, "key": begin + key}


def authority(operator: Actor, name: str = "ca", **more: Any) -> None:
    """An authority that cannot be reached."""
    spec = {"directory_url": DIRECTORY} | more
    save_object(actor=operator, kind="CertificateAuthority", name=name, spec=spec)


def advanced(row: Certificate) -> CertificateOrder:
    """Its order after one turn."""
    services.advance(order_id=row.order.pk)
    return CertificateOrder.objects.get(certificate=row)


def errors_of(actor: Actor, spec: dict[str, Any], kind: str = "Certificate") -> list[FieldError]:
    """What is said against a document."""
    with pytest.raises(Invalid) as refused:
        save_object(actor=actor, kind=kind, name="auto", spec=spec)
    return list(refused.value.field_errors)


def under_way(row: Certificate, *challenges: dict[str, Any], **pushes: Any) -> None:
    """An order that waits for these answers."""
    CertificateOrder.objects.filter(certificate=row).update(
        state=CertificateOrder.State.ANSWERING,
        hostnames=(row.automatic or {})["hostnames"],
        challenges=list(challenges),
        pushes={"fleets": {}, "zones": {}} | pushes,
        sealed_key=seal(b"key"),
        began_at=now(),
    )


def test_a_certificate_is_brought_or_automatic_and_not_both(tutorial_env: Actor, acme: Actor) -> None:
    automatic = {"hostnames": [HOST]}
    assert [each.code for each in errors_of(acme, {"automatic": automatic, "chain": "x"})] == ["automatic"]
    assert [each.code for each in errors_of(acme, {})] == ["missing"]
    assert errors_of(acme, {"automatic": {"hostnames": ["**.acme.example"]}})[0].pointer.endswith("/hostnames/0")
    assert describe(order(acme, HOST)) == {"automatic": automatic}


def test_until_it_is_issued_nobody_presents_it_and_it_says_so(tutorial_env: Actor, acme: Actor) -> None:
    row = order(acme, HOST)
    snapshot, _ = freeze(Fleet.objects.get(name="us-central1").pk)
    assert snapshot.certificates == ()
    assert in_words(row, now()) == ("waiting", "It is ordered in a moment.")


def test_what_is_missing_is_said_and_counts_for_no_failure(tutorial_env: Actor, acme: Actor, operator: Actor) -> None:
    found = advanced(order(acme, "stranger.example"))
    assert found.error.startswith("Verify stranger.example first")
    found = advanced(order(acme, HOST, name="second"))
    assert found.error == "There is no certificate authority to ask."
    authority(operator, for_customers=False)
    found = advanced(Certificate.objects.get(name="second"))
    assert found.error == "There is no certificate authority to ask."
    assert found.failures == 0
    assert found.next_at > now() + timedelta(minutes=4)


def way_of(actor: Actor, hostname: str) -> proving.Way:
    """How the hostname is proved."""
    return proving.ways_of(actor.account, [hostname])[hostname]


def zone(actor: Actor, domain: str, account: str = "operator", **more: Any) -> Zone:
    """A zone that we write."""
    spec = {"domain": domain, "driver": "memory", "server": f"memory://{domain.partition(chr(46))[0]}"} | more
    row: Zone = save_object(actor=actor, kind="Zone", name=domain.replace(".", "-"), account=account, spec=spec)
    return row


@pytest.fixture
def names(settings: Settings) -> Iterator[NameServer]:
    """A name server that everybody's names are asked at."""
    with name_server() as server:
        settings.RESOLVERS = (server.address,)
        yield server


@pytest.mark.usefixtures("names")
def test_a_wildcard_needs_a_zone_that_we_write(tutorial_env: Actor, operator: Actor) -> None:
    with pytest.raises(proving.NotProvable, match=r"create a zone of wild\.example here \(not in Route 53\)\.$"):
        way_of(operator, "*.wild.example")
    zone(operator, "wild.example")
    way = way_of(operator, "*.wild.example")
    assert (way.kind, way.name) == (DNS, "_acme-challenge.wild.example")
    assert way_of(operator, HOST).kind == HTTP


@pytest.mark.usefixtures("names")
def test_a_zone_of_another_customer_proves_nothing(
    tutorial_env: Actor, operator: Actor, acme: Actor, globex: Actor
) -> None:
    own = zone(operator, "acme.example", account="acme")
    assert way_of(acme, "*.acme.example").zone == own.pk
    with pytest.raises(proving.NotProvable):
        way_of(globex, "*.acme.example")


def test_a_name_whose_dns_is_elsewhere_is_proved_where_its_cname_sends_the_challenge(
    tutorial_env: Actor, operator: Actor, acme: Actor, names: NameServer
) -> None:
    own = zone(operator, "acme.example", account="acme")
    to = "shop.elsewhere.example._acme-challenge.acme.example"
    with pytest.raises(proving.NotProvable, match=f"make _acme-challenge.shop.elsewhere.example a CNAME of {to} where"):
        way_of(acme, "*.shop.elsewhere.example")
    names.aliases["_acme-challenge.shop.elsewhere.example"] = to.upper()
    wanted = ["*.shop.elsewhere.example", "shop.elsewhere.example"]
    assert set(proving.ways_of(acme.account, wanted).values()) == {proving.Way(DNS, zone=own.pk, name=to)}


@pytest.mark.parametrize(
    "to",
    [
        "www.operator.example",
        "_acme-challenge.operator.example",
        "www.elsewhere.example._acme-challenge.operator.example",
        "x.shop.elsewhere.example._acme-challenge.operator.example",
        "shop.elsewhere.example._acme-challenge.x._acme-challenge.operator.example",
        "shop.elsewhere.example._acme-challenge.of-globex.example",
        "shop.elsewhere.example._acme-challenge.at-amazon.example",
        "shop.elsewhere.example._acme-challenge.nobodys.example",
    ],
)
def test_a_cname_chooses_neither_a_name_nor_a_zone_of_somebody_else(
    tutorial_env: Actor, operator: Actor, acme: Actor, globex: Actor, names: NameServer, to: str
) -> None:
    zone(operator, "operator.example")
    zone(operator, "of-globex.example", account="globex")
    zone(operator, "at-amazon.example")
    Zone.objects.filter(domain="at-amazon.example").update(driver=Zone.Driver.ROUTE53)
    names.aliases["_acme-challenge.shop.elsewhere.example"] = to
    with pytest.raises(proving.NotProvable, match=r"\(not in Route 53\)\.$"):
        way_of(acme, "*.shop.elsewhere.example")
    names.aliases["_acme-challenge.shop.elsewhere.example"] = "shop.elsewhere.example._acme-challenge.operator.example"
    assert way_of(acme, "*.shop.elsewhere.example").kind == DNS  # the operator's zone serves every account


def test_a_name_server_that_is_silent_proves_nothing(
    tutorial_env: Actor, acme: Actor, names: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proving, "PATIENCE_WITH_RESOLVERS_S", 0.2)
    names.silent = True
    with pytest.raises(proving.NotProvable):
        way_of(acme, "*.shop.elsewhere.example")


def test_an_authority_that_is_not_reached_is_told_and_asked_again_later(
    tutorial_env: Actor, acme: Actor, operator: Actor
) -> None:
    authority(operator)
    row = order(acme, HOST)
    found = advanced(row)
    assert found.error == "The authority was not reached. The connection was refused."
    assert (found.failures, found.state) == (1, CertificateOrder.State.WAITING)
    assert found.next_at > now() + timedelta(minutes=4)
    state, said = in_words(Certificate.objects.select_related("order").get(pk=row.pk), now())
    assert state == "failing"
    assert "The next try is in" in said


@pytest.mark.parametrize("directory", [b"7", b"no JSON"])
def test_an_authority_that_answers_nonsense_is_asked_again_later(
    tutorial_env: Actor, acme: Actor, operator: Actor, directory: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "fetch", lambda *_, **__: Answer(200, {}, directory, 1, "127.0.0.1"))
    authority(operator)
    found = advanced(order(acme, HOST))
    assert (found.failures, found.error) == (1, "The authority answers otherwise than ACME does.")


def test_a_proof_that_nobody_ordered_is_refused(tutorial_env: Actor, acme: Actor, operator: Actor) -> None:
    ways = proving.ways_of(acme.account, [HOST])
    for wildcard, hostname in ((True, HOST), (False, "other.example")):
        asked = asking.Authorization("https://ca/authz", hostname, wildcard, asking.PENDING, ())
        with pytest.raises(asking.Refusal, match="which was not ordered"):
            services._challenge(asked, ways)


def test_two_workers_never_work_on_one_order(tutorial_env: Actor, acme: Actor, operator: Actor) -> None:
    authority(operator)
    row = order(acme, HOST)
    lease = leases.take(CertificateOrder, services.LEASE, pk=row.order.pk)
    assert lease is not None
    assert advanced(row).failures == 0  # somebody else has it
    lease.release()
    assert advanced(row).failures == 1


def test_what_a_worker_wanted_to_write_after_its_lease_is_not_written(tutorial_env: Actor, acme: Actor) -> None:
    row = order(acme, HOST)
    late = leases.take(CertificateOrder, timedelta(0), pk=row.order.pk)
    other = leases.take(CertificateOrder, services.LEASE, pk=row.order.pk)
    assert late is not None
    assert other is not None
    with pytest.raises(leases.LeaseLost):
        services._move(late, CertificateOrder.State.FINALIZING)
    assert CertificateOrder.objects.get(pk=row.order.pk).state == CertificateOrder.State.WAITING


def test_only_fleets_that_serve_the_host_answer_and_only_while_an_order_is_under_way(
    tutorial_env: Actor, acme: Actor, operator: Actor
) -> None:
    row, fleet = order(acme, HOST), Fleet.objects.get(name="us-central1")
    assert freeze(fleet.pk)[0].challenges is None  # without an authority nodes ask no map
    authority(operator)
    entry = {"hostname": HOST, "kind": HTTP, "token": "t" * 20, "answer": "a", "url": "", "authorization": ""}
    under_way(row, entry, fleets={str(fleet.pk): 1})
    assert freeze(fleet.pk)[0].challenges == (Challenge(HOST, "t" * 20, "a"),)
    CertificateOrder.objects.update(pushes={"fleets": {}, "zones": {}})
    assert freeze(fleet.pk)[0].challenges == ()


def test_a_zone_has_the_values_of_orders_beside_those_of_its_own(tutorial_env: Actor, operator: Actor) -> None:
    spec = {"domain": "wild.example", "driver": "memory", "server": "memory://wild"}
    save_object(actor=operator, kind="Zone", name="wild", spec=spec)
    own = {"zone": "wild", "label": "_acme-challenge", "type": "TXT", "values": ['"ours"']}
    save_object(actor=operator, kind="Record", name="own", spec=own)
    zone, row = Zone.objects.get(name="wild"), order(operator, "*.wild.example")
    name = "_acme-challenge.wild.example"
    entry = {"hostname": "wild.example", "kind": DNS, "answer": "digest", "zone": zone.pk, "name": name}
    under_way(row, entry, zones={str(zone.pk): 1})
    found = {each.name: each.values for each in freeze_zone(zone.pk).records}
    assert found == {name: ('"ours"', "digest")}
    CertificateOrder.objects.update(state=CertificateOrder.State.WAITING)
    assert {each.name: each.values for each in freeze_zone(zone.pk).records} == {name: ('"ours"',)}


def test_other_hostnames_end_the_order_that_is_under_way(tutorial_env: Actor, acme: Actor, operator: Actor) -> None:
    authority(operator)
    row = order(acme, HOST)
    under_way(row)
    CertificateOrder.objects.update(authority=CertificateAuthority.objects.get())
    order(acme, HOST, "other.acme.example")
    found = advanced(row)
    assert (found.state, found.challenges, found.sealed_key) == (CertificateOrder.State.WAITING, [], None)


def test_a_chain_that_is_brought_again_ends_the_orders_and_an_automatic_one_keeps_it(
    tutorial_env: Actor, acme: Actor
) -> None:
    spec = brought()
    row: Certificate = save_object(actor=acme, kind="Certificate", name="auto", spec=spec)
    order(acme, HOST)
    found = Certificate.objects.get(pk=row.pk)
    assert (found.chain_pem, found.hostnames) == (row.chain_pem, [HOST])
    save_object(actor=acme, kind="Certificate", name="auto", spec=spec)
    assert not CertificateOrder.objects.exists()


@pytest.mark.parametrize("how", ["deleted", "brought"])
def test_nobody_answers_for_a_certificate_that_is_automatic_no_more(
    tutorial_env: Actor, operator: Actor, acme: Actor, how: str
) -> None:
    authority(operator)
    row, own = order(acme, HOST), zone(operator, "acme.example", account="acme")
    fleets = [Fleet.objects.get(name="us-central1"), Fleet.objects.get(name="europe-west1")]
    here, there = (freeze(fleet.pk)[1] for fleet in fleets)
    pushed = freeze_zone(own.pk).generation
    by_node = {"hostname": HOST, "kind": HTTP, "token": "t", "answer": "t.k", "url": "u", "authorization": "a"}
    by_zone = by_node | {"kind": DNS, "zone": own.pk, "name": f"_acme-challenge.{HOST}"}
    under_way(row, by_node, by_zone, fleets={str(fleets[0].pk): here}, zones={str(own.pk): pushed})
    assert freeze(fleets[0].pk)[0].challenges
    if how == "deleted":
        delete_object(actor=acme, kind="Certificate", name="auto")
    else:
        save_object(actor=acme, kind="Certificate", name="auto", spec=brought())
    snapshot, generation = freeze(fleets[0].pk)
    assert (snapshot.challenges, generation) == ((), here + 1), "a worker takes the answer from the nodes"
    wanted = freeze_zone(own.pk)
    assert (wanted.records, wanted.generation) == ((), pushed + 1), "and from the name server"
    assert freeze(fleets[1].pk)[1] == there


def test_keys_of_an_authority_are_sealed_and_shown_nowhere(operator: Actor) -> None:
    authority(operator, external_key_id="kid", external_hmac_key="QUJD" * 10)
    row = CertificateAuthority.objects.get()
    assert b"QUJD" not in bytes(row.sealed_hmac_key or b"")
    assert "QUJD" not in str(describe(row))
    wanted = {"directory_url": DIRECTORY, "external_hmac_key": "QUJD" * 10}
    assert [each.code for each in errors_of(operator, wanted, "CertificateAuthority")] == ["missing"]
