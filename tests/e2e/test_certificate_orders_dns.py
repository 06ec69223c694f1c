"""Certificates proved in DNS, with a real authority (Pebble) and real name servers that our pushes write.

Exhaustive, because Pebble is built with Go. Nodes, workers and failures are in test_certificate_orders.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Certificate, CertificateOrder, Zone
from apps.definitions.services import save_object
from apps.dns import services as dns
from apps.dns.models import ZoneSync
from apps.issuing import services
from tests.e2e.name_servers import API_KEY, KEY_NAME, SECRET, Server, running_bind, running_powerdns
from tests.e2e.pebble import Pebble, pebble
from tests.ports import spare_port

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.django_db]

OURS, THEIRS = "ours.example", "theirs.example"
KEY_ID, HMAC_KEY = "kid-1", "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
PATIENCE_S = 60.0
# Where whoever has the DNS of THEIRS sends challenges: as we say, and to a name that they chose in our zone.
ALIASES = {
    "_acme-challenge.shop": f"shop.{THEIRS}._acme-challenge.{OURS}",
    "_acme-challenge.sly": f"_acme-challenge.{OURS}",
}


@pytest.fixture(params=["bind", "powerdns"])
def names(
    request: pytest.FixtureRequest, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    start, secret = {"bind": (running_bind, SECRET), "powerdns": (running_powerdns, API_KEY)}[request.param]
    with start(tmp_path / "names", OURS, others={THEIRS: ALIASES}) as server:
        settings.RESOLVERS = (server.resolver,)
        monkeypatch.setenv("SPILLWAY_DNS_OURS", secret)
        monkeypatch.setenv("SPILLWAY_DNS_OURS_SERVERS", server.server)
        yield server


@pytest.fixture
def authority(tmp_path: Path, names: Server) -> Iterator[Pebble]:
    """It takes only accounts that it knows."""
    with pebble(tmp_path, http_port=spare_port(), names=names.resolver, known={KEY_ID: HMAC_KEY}) as found:
        yield found


@pytest.fixture
def zone(operator: Actor, names: Server) -> Zone:
    return Zone.objects.create(
        account=operator.account,
        name="ours",
        domain=OURS,
        driver=names.driver,
        server=names.server,
        key_name=KEY_NAME if names.driver == "rfc2136" else "",
        credentials="env:OURS",
    )


def save_authority(operator: Actor, found: Pebble, **more: str) -> None:
    spec = {"directory_url": found.directory, "trusted_ca": found.trusted_ca, "terms_agreed": True} | more
    save_object(actor=operator, kind="CertificateAuthority", name="pebble", spec=spec)


def ordered(operator: Actor, *hostnames: str) -> CertificateOrder:
    """The order of a certificate, as far as it gets: what workers do by turns is done here."""
    spec = {"automatic": {"hostnames": list(hostnames)}}
    row: Certificate = save_object(actor=operator, kind="Certificate", name="one", spec=spec)
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        services.advance(order_id=row.order.pk)
        for each in Zone.objects.all():
            dns.reconcile_zone(zone_id=each.pk)
        found = CertificateOrder.objects.select_related("certificate").get(certificate=row)
        if found.state == CertificateOrder.State.WAITING:
            return found
        CertificateOrder.objects.filter(pk=found.pk).update(next_at=now())
        time.sleep(0.2)
    raise AssertionError(f"{found.state}: {found.error} {list(ZoneSync.objects.values_list('error', flat=True))}")


def test_a_wildcard_of_our_zone_and_a_name_that_is_delegated_to_it_are_proved_to_an_authority_that_knows_us(
    operator: Actor, zone: Zone, authority: Pebble
) -> None:
    save_authority(operator, authority, external_key_id=KEY_ID, external_hmac_key=HMAC_KEY)
    wanted = {f"*.{OURS}", OURS, f"*.shop.{THEIRS}", f"shop.{THEIRS}"}
    row = ordered(operator, *wanted)
    assert row.error == ""
    assert set(row.certificate.hostnames) == wanted


def test_a_name_that_its_owner_sends_elsewhere_in_our_zone_is_not_written_there(
    operator: Actor, zone: Zone, authority: Pebble
) -> None:
    save_authority(operator, authority, external_key_id=KEY_ID, external_hmac_key=HMAC_KEY)
    row = ordered(operator, f"*.sly.{THEIRS}")
    assert f"make _acme-challenge.sly.{THEIRS} a CNAME of sly.{THEIRS}._acme-challenge.{OURS} where" in row.error
    assert row.certificate.fingerprint == ""


def test_without_its_key_an_authority_that_takes_known_accounts_refuses_in_words(
    operator: Actor, zone: Zone, authority: Pebble
) -> None:
    save_authority(operator, authority)
    assert "set external_key_id and its HMAC key" in ordered(operator, OURS).error


def test_with_another_key_it_refuses_as_well(operator: Actor, zone: Zone, authority: Pebble) -> None:
    save_authority(operator, authority, external_key_id=KEY_ID, external_hmac_key="QUJD" * 16)
    row = ordered(operator, OURS)
    assert row.error
    assert row.certificate.fingerprint == ""
