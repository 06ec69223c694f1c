"""Zones and records: whose names are whose in a shared zone, and what a zone may hold."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from apps.accounts.actors import Actor
from apps.accounts.hostnames.claims import claim_hostname
from apps.core.errors import Conflict, Forbidden, Invalid
from apps.definitions import selectors
from apps.definitions.freezing.zone_records import wanted_records
from apps.definitions.models import Record, Zone
from apps.definitions.services import apply_document, delete_object, save_object
from apps.fleet.models import StaticIP
from tests.apps.clouds_env import RECORD, ZONE, operator_of, remembered, spec_of

pytestmark = pytest.mark.django_db


def share_with_globex(operator: Actor, _: Actor) -> None:
    """The zone is acme's and globex's."""
    zone = {"kind": "Zone", "name": "shared", "spec": ZONE | {"tags": {"customer": "acme", "also": "globex"}}}
    grant = {"kind": "Grant", "name": "zone-of-globex", "spec": {"account": "globex", "tag": "also=globex"}}
    apply_document(actor=operator, objects=[zone, grant])


SHARED, BOTH = remembered(), remembered(share_with_globex)


@pytest.fixture
def operator(db: None, request: pytest.FixtureRequest) -> Actor:
    """The operator in one of the two environments."""
    return operator_of(BOTH if "both" in request.fixturenames else SHARED)


@pytest.fixture
def shared(operator: Actor) -> Actor:
    """The operator, with a zone that is shared with acme alone."""
    return operator


@pytest.fixture
def both(operator: Actor) -> Actor:
    """The operator, with a zone that is shared with acme and with globex."""
    return operator


def record(actor: Actor, name: str, **change: Any) -> Record:
    """A record that was saved."""
    row: Record = save_object(actor=actor, kind="Record", name=name, spec=RECORD | change)
    return row


def refused(actor: Actor, **change: Any) -> dict[str, str]:
    """Pointer → code of what is refused."""
    with pytest.raises(Invalid) as caught:
        record(actor, "refused", **change)
    return {field_error.pointer: field_error.code for field_error in caught.value.field_errors}


def test_a_customer_keeps_records_in_a_zone_that_is_shared_with_it(shared: Actor, acme: Actor) -> None:
    before = Zone.objects.get(name="shared").desired_generation
    assert record(acme, "www").account == acme.account
    assert Zone.objects.get(name="shared").desired_generation > before
    assert [row.name for row in selectors.records(acme)] == ["www"], "the operator's own are not among them"
    assert [row.domain for row in selectors.zones(acme)] == ["shared.example.net"]


def test_another_customers_zone_does_not_exist(shared: Actor, globex: Actor) -> None:
    assert list(selectors.zones(globex)) == []
    assert refused(globex) == {"/spec/zone": "unknown"} == refused(globex, zone="operator/nothing")


def test_a_customer_changes_no_zone(shared: Actor, acme: Actor) -> None:
    with pytest.raises(Forbidden):
        save_object(actor=acme, kind="Zone", name="shared", account="operator", spec=ZONE)
    with pytest.raises(Forbidden):
        delete_object(actor=acme, kind="Zone", name="shared", account="operator")


FOREIGN: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"label": "@", "type": "TXT", "values": ['"x"']}, {"/spec/label": "apex"}),
    ({"label": "_dmarc", "type": "TXT", "values": ['"x"']}, {"/spec/label": "apex"}),
    ({"label": "*"}, {"/spec/label": "apex"}),
    ({"label": "sub", "type": "NS", "values": ["ns1.example.org."]}, {"/spec/type": "delegation"}),
    ({"tags": {"customer": "globex"}}, {"/spec/tags": "operators"}),
    # Whoever answers there has certificates of a name whose owner sends its challenges here.
    *(
        ({"label": label, "type": "TXT", "values": ['"x"']}, {"/spec/label": "delegate"})
        for name in ("shop.globex.example", "x.shop.globex.example", "*.example", "*")
        for label in [f"{name}._acme-challenge"]
    ),
    ({"label": "a._acme-challenge", "type": "CNAME", "values": ["a.example."]}, {"/spec/label": "delegate"}),
]


@pytest.mark.parametrize(("change", "field_errors"), FOREIGN)
def test_what_concerns_the_whole_zone_is_its_owners(
    shared: Actor, acme: Actor, change: dict[str, Any], field_errors: dict[str, str]
) -> None:
    found = refused(acme, **change)
    assert field_errors.items() <= found.items()
    assert save_object(actor=shared, kind="Record", name="own", spec=RECORD | {"label": "x", "zone": "shared"} | change)


TAKEN = {"/spec/label": "name_taken"}


@pytest.mark.parametrize(
    ("theirs", "wanted"),
    [
        ("www", {"label": "www", "type": "TXT", "values": ['"x"']}),
        ("www", {"label": "_spillway.www", "type": "TXT", "values": ['"x"']}),
        ("_acme-challenge.www", {"label": "www"}),
        ("*.apps", {"label": "one.apps"}),
        ("one.apps", {"label": "*.apps"}),
    ],
)
def test_a_name_belongs_to_whoever_has_records_of_it(
    both: Actor, acme: Actor, globex: Actor, theirs: str, wanted: dict[str, Any]
) -> None:
    record(globex, "theirs", label=theirs, type="TXT", values=['"x"'])
    assert refused(acme, **wanted) == TAKEN
    assert record(acme, "beside", label="beside")


def test_a_name_of_the_zones_owner_is_not_taken_but_his_wildcard_is_no_name(shared: Actor, acme: Actor) -> None:
    for label in ("mail", "*"):
        save_object(actor=shared, kind="Record", name="own", spec=RECORD | {"zone": "shared", "label": label})
        if label == "mail":
            assert refused(acme, label="mail", type="TXT", values=['"x"']) == TAKEN
    assert record(acme, "www")


def test_a_hostname_that_another_account_verified_is_not_available(both: Actor, acme: Actor, globex: Actor) -> None:
    with transaction.atomic():
        for name in ("www.shared.example.net", "*.apps.shared.example.net"):
            claim_hostname(account=globex.account, name=name, verification="dns")
        claim_hostname(account=globex.account, name="waits.shared.example.net")
    assert record(acme, "waits", label="waits")  # what nobody verified keeps nobody out
    assert refused(acme) == TAKEN
    assert refused(acme, label="one.apps") == TAKEN
    assert refused(acme, label="_acme-challenge.www", type="TXT", values=['"x"']) == TAKEN
    assert record(globex, "www", label="www")


def test_a_refusal_does_not_say_whose_the_name_is(both: Actor, acme: Actor, globex: Actor) -> None:
    record(globex, "secret-name", label="www")
    with pytest.raises(Invalid) as caught:
        record(acme, "x", label="www")
    assert "globex" not in str(caught.value)
    assert "secret-name" not in str(caught.value)


def test_a_cname_stands_alone(shared: Actor, acme: Actor) -> None:
    record(acme, "www")
    cname = {"type": "CNAME", "values": ["web.example.org."]}
    assert refused(acme, **cname) == {"/spec/type": "cname"}
    record(acme, "alias", label="alias", **cname)
    assert refused(acme, label="alias") == {"/spec/type": "cname"}
    assert refused(acme, label="alias", **cname) == {"/spec/label": "taken"}
    assert refused(shared, zone="shared", label="@", **cname)["/spec/label"] == "apex"


VALUES: list[tuple[str, str, str]] = [
    ("A", "192.0.2.01", "record_value"),
    ("A", "0.0.0.0", "address"),
    ("A", "192.0.2.1 ; comment", "record_spelling"),
    ("AAAA", "2001:DB8::1", "record_spelling"),
    ("AAAA", "::ffff:192.0.2.1", "address"),
    ("AAAA", "::ffff:c000:201", "record_spelling"),
    ("CNAME", "web.example.org", "target"),
    ("CNAME", "web", "target"),
    ("CNAME", "Web.example.org.", "target"),
    ("MX", "mail.example.org.", "record_value"),
    ("MX", "10 .", "target"),
    ("MX", "70000 mail.example.org.", "record_value"),
    ("TXT", "plain", "record_spelling"),
    ("TXT", '"\\195\\164"', "not_ascii"),
    ("TXT", '"open', "record_value"),
    ("CAA", '0 nonsense "x"', "caa_tag"),
    ("CAA", '7 issue "x"', "caa_flags"),
    ("NS", "\\# 4 c0000201", "record_value"),
]


@pytest.mark.parametrize(("kind", "value", "code"), VALUES)
def test_a_value_has_one_spelling_of_its_type(shared: Actor, kind: str, value: str, code: str) -> None:
    label = "_sip._tcp" if kind == "SRV" else "x"
    assert refused(shared, zone="shared", label=label, type=kind, values=[value]) == {"/spec/values/0": code}


GOOD: list[tuple[str, str, list[str]]] = [
    ("A", "x", ["192.0.2.2", "192.0.2.1"]),
    ("AAAA", "*.x", ["2001:db8::1"]),
    ("CNAME", "x", ["_x.acm-validations.aws.example."]),
    ("MX", "@", ["10 mail.example.org.", "20 mail2.example.org."]),
    ("MX", "x", ["0 ."]),
    ("TXT", "_dmarc", ['"v=DMARC1; p=none"', '"a \\"quoted\\" word" "and more"']),
    ("SRV", "_sip._tcp", ["10 5 5060 sip.example.org.", "0 0 0 ."]),
    ("CAA", "@", ['0 issue "letsencrypt.org"', '128 issuewild ";"']),
    ("NS", "sub", ["ns1.example.org."]),
]


@pytest.mark.parametrize(("kind", "label", "values"), GOOD)
def test_values_are_kept_as_a_zone_file_has_them(shared: Actor, kind: str, label: str, values: list[str]) -> None:
    spec = {"zone": "shared", "label": label, "type": kind, "values": values}
    save_object(actor=shared, kind="Record", name="good", spec=spec)
    assert spec_of(shared, "good", "Record")["values"] == sorted(values)
    again = save_object(actor=shared, kind="Record", name="good", spec=spec_of(shared, "good", "Record"))
    assert again.version == 1


def test_a_record_follows_an_address_and_a_customer_only_its_own(shared: Actor, acme: Actor) -> None:
    given = {"address": "192.0.2.9", "owner": "acme"}
    save_object(actor=shared, kind="StaticIP", name="given", spec=given)
    save_object(actor=shared, kind="StaticIP", name="kept", spec={"address": "192.0.2.10"})
    record(acme, "www", values=[], static_ip="given")
    found = {each.name: each.values for each in wanted_records(Zone.objects.get(name="shared")).records}
    assert found["www.shared.example.net"] == ("192.0.2.9",)
    assert refused(acme, label="b", values=[], static_ip="kept") == {"/spec/static_ip": "unknown"}
    assert refused(acme, label="b", type="AAAA", values=[], static_ip="given") == {"/spec/type": "family"}
    before = Zone.objects.get(name="shared").desired_generation
    save_object(actor=shared, kind="StaticIP", name="given", spec=given | {"address": "192.0.2.11"})
    assert Zone.objects.get(name="shared").desired_generation > before, "what follows it is pushed again"
    with pytest.raises(Conflict, match="in use by"):
        delete_object(actor=shared, kind="StaticIP", name="given")
    assert StaticIP.objects.filter(name="given").exists()


def test_what_cannot_be_resolved_yet_is_named_and_not_dropped(shared: Actor) -> None:
    spec = {"zone": "shared", "label": "ip", "type": "A", "static_ip": "elastic"}
    row = save_object(actor=shared, kind="Record", name="ip", spec=spec)
    ((pk, reason),) = wanted_records(Zone.objects.get(name="shared")).unresolved
    assert pk == row.pk
    assert "elastic" in reason


def test_a_grant_is_not_taken_from_under_records(shared: Actor, acme: Actor) -> None:
    record(acme, "www")
    with pytest.raises(Conflict, match="record acme/www"):
        delete_object(actor=shared, kind="Grant", name="zone-of-acme")
    with pytest.raises(Conflict, match="shares the zone"):
        save_object(actor=shared, kind="Zone", name="shared", spec=ZONE | {"tags": {}})
    delete_object(actor=acme, kind="Record", name="www")
    delete_object(actor=shared, kind="Grant", name="zone-of-acme")


def test_a_quota_counts_records(shared: Actor, acme: Actor) -> None:
    account = {"title": "Acme", "kind": "customer", "quotas": {"records": 1}}
    save_object(actor=shared, kind="Account", name="acme", spec=account)
    acme.account.refresh_from_db()
    record(acme, "one", label="one")
    assert refused(acme, label="two") == {"/name": "quota"}


POWERDNS = {"driver": "powerdns", "credentials": "env:PDNS"}


@pytest.mark.parametrize(
    ("change", "field_errors"),
    [
        ({"driver": "memory"}, {"/spec/driver": "choice"}),
        (POWERDNS | {"server": "http://dns.example.org:8081"}, {"/spec/server": "url"}),
        (POWERDNS | {"server": "http://localhost.example.org"}, {"/spec/server": "url"}),
        (POWERDNS | {"server": "http://127.0.0.1:8081"}, {}),
        (POWERDNS | {"server": "http://[::1]:8081"}, {}),
        (POWERDNS | {"server": "https://dns.example.org:8081"}, {}),
    ],
)
def test_an_installation_keeps_no_zone_in_memory_and_sends_no_key_in_the_clear(
    shared: Actor, settings: Any, change: dict[str, str], field_errors: dict[str, str]
) -> None:
    settings.DEVELOPMENT = False
    found: dict[str, str] = {}
    try:
        save_object(actor=shared, kind="Zone", name="other", spec={"domain": "other.example.net"} | change)
    except Invalid as invalid:
        found = {field_error.pointer: field_error.code for field_error in invalid.field_errors}
    assert found == field_errors


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"driver": "rfc2136"}, "/spec/server"),
        ({"driver": "rfc2136", "server": "192.0.2.1"}, "/spec/server"),
        ({"driver": "rfc2136", "server": "169.254.169.254:53"}, "/spec/server"),
        ({"driver": "powerdns", "server": "ftp://x.example", "credentials": "env:PDNS"}, "/spec/server"),
        ({"driver": "powerdns", "server": "https://x.example", "credentials": "hunter2"}, "/spec/credentials"),
        ({"driver": "route53"}, "/spec/stack"),
        ({"stack": "aws-eu"}, "/spec/stack"),
        ({"resolvers": ["dns.example"]}, "/spec/resolvers/0"),
        ({"domain": "Example.net"}, "/spec/domain"),
        ({"domain": "shared.example.net"}, "/spec/domain"),
    ],
)
def test_a_zone_says_what_its_driver_needs_and_nothing_else(
    shared: Actor, change: dict[str, Any], pointer: str
) -> None:
    spec = {"domain": "other.example.net", "driver": "memory"} | change
    with pytest.raises(Invalid) as caught:
        save_object(actor=shared, kind="Zone", name="other", spec=spec)
    assert pointer in {field_error.pointer for field_error in caught.value.field_errors}
