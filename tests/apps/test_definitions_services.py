"""One write is one change, one audit entry, one raised generation; what cannot work is refused by field."""

from __future__ import annotations

import copy
import datetime as dt
import json
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from pytest_django import DjangoAssertNumQueries

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound, Stale
from apps.definitions import selectors
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.models import Certificate, LoadBalancer, Pool, Route, Server
from apps.definitions.previewing.preview import preview_route
from apps.definitions.reading.describing import describe, document
from apps.definitions.reading.documents import read_spec
from apps.definitions.services import delete_object, save_object, set_server
from apps.fleet.models import Fleet

Spec = dict[str, Any]


def generation() -> int:
    """The desired generation of one of the fleets."""
    return Fleet.objects.get(name="us-central1").desired_generation


def spec_of(actor: Actor, name: str) -> Spec:
    """The present document of a route."""
    return copy.deepcopy(describe(selectors.routes(actor).get(name=name)))


def pointers(caught: pytest.ExceptionInfo[Invalid]) -> list[str]:
    """Where the errors are."""
    return [field_error.pointer for field_error in caught.value.field_errors]


def pem_pair(*names: str, days: int = 30) -> tuple[str, str]:
    """A self-signed certificate for the names, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    start = dt.datetime.now(dt.UTC) - dt.timedelta(days=60)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start + dt.timedelta(days=60 + days))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
    certificate = builder.sign(key, SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM).decode(), private.decode()


def test_a_write_is_one_version_one_audit_entry_and_one_generation(tutorial_env: Actor, acme: Actor) -> None:
    before, entries = generation(), Entry.objects.count()
    spec = spec_of(acme, "shop") | {"methods": ["GET"]}
    row = save_object(actor=acme, kind="Route", name="shop", spec=spec, expected_version=1, reason="fewer methods")
    entry = Entry.objects.first()
    assert entry is not None
    assert (row.version, generation(), Entry.objects.count()) == (2, before + 1, entries + 1)
    assert (entry.actor, entry.action, entry.object_label) == (acme.name, "update", "acme/shop")
    before_and_after = [json.loads(json.dumps(part))["methods"] for part in (entry.before, entry.after)]
    assert (*before_and_after, entry.reason) == ([], ["GET"], "fewer methods")


def test_saving_what_is_already_so_is_no_change(tutorial_env: Actor, acme: Actor) -> None:
    before, entries = generation(), Entry.objects.count()
    rows: list[Route | Pool] = [*selectors.routes(acme), *selectors.pools(acme)]
    for row in rows:
        kind = type(row).__name__
        assert save_object(actor=acme, kind=kind, name=row.name, spec=describe(row)).version == 1
    assert (generation(), Entry.objects.count()) == (before, entries)


def test_describing_a_row_and_reading_it_again_gives_the_same_document(tutorial_env: Actor) -> None:
    rows: list[Route | Pool | LoadBalancer] = [*selectors.routes(tutorial_env), *selectors.pools(tutorial_env)]
    rows += selectors.load_balancers(tutorial_env)
    assert len(rows) == 9
    for row in rows:
        assert document(read_spec(type(row).__name__, describe(row))) == describe(row)


@pytest.mark.both_engines
def test_a_stale_version_changes_nothing(tutorial_env: Actor, acme: Actor) -> None:
    spec = spec_of(acme, "shop")
    save_object(actor=acme, kind="Route", name="shop", spec=spec | {"methods": ["GET"]}, expected_version=1)
    with pytest.raises(Stale):
        save_object(actor=acme, kind="Route", name="shop", spec=spec | {"methods": ["PUT"]}, expected_version=1)
    with pytest.raises(Stale):
        delete_object(actor=acme, kind="Route", name="shop", expected_version=1)
    assert Route.objects.get(account=acme.account, name="shop").methods == ["GET"]


@pytest.mark.both_engines
def test_creating_what_is_there_is_a_conflict(tutorial_env: Actor, acme: Actor) -> None:
    with pytest.raises(Conflict):
        save_object(actor=acme, kind="Route", name="shop", spec=spec_of(acme, "shop"), create_only=True)


def test_what_is_in_use_is_not_deleted_and_its_users_are_named(tutorial_env: Actor, acme: Actor) -> None:
    with pytest.raises(Conflict, match="route checkout, route shop"):
        delete_object(actor=acme, kind="Pool", name="shop")
    with pytest.raises(Conflict, match="in use by"):
        delete_object(actor=tutorial_env, kind="LoadBalancer", name="front")
    for kind in ("Region", "Fleet"):
        with pytest.raises(Conflict, match="in use by"):
            delete_object(actor=tutorial_env, kind=kind, name="us-central1")


@pytest.mark.parametrize("kind", ["Pool", "Route"])
def test_a_foreign_object_is_as_missing_as_a_missing_one(tutorial_env: Actor, acme: Actor, kind: str) -> None:
    messages = set()
    for name in ("api", "never-there"):
        with pytest.raises(NotFound) as caught:
            delete_object(actor=acme, kind=kind, name=name)
        messages.add(caught.value.detail)
    assert len(messages) == 1


def test_a_pool_of_another_account_is_unknown_in_the_same_words_as_a_missing_one(
    tutorial_env: Actor, acme: Actor
) -> None:
    spec, details = spec_of(acme, "shop"), set()
    for reference in ("globex/api", "globex/nope"):
        spec["action"] = {"pools": [{"pool": reference, "weight": 1}]}
        with pytest.raises(Invalid) as caught:
            save_object(actor=acme, kind="Route", name="shop", spec=spec)
        assert pointers(caught) == ["/spec/action/pools/0/pool"]
        details.add(caught.value.field_errors[0].detail.replace(reference, "…"))
    assert len(details) == 1


@pytest.mark.parametrize("account", ["globex", "never-there"])
def test_a_customer_writes_into_its_own_account_only(tutorial_env: Actor, acme: Actor, account: str) -> None:
    with pytest.raises(Invalid) as caught:
        save_object(actor=acme, kind="Pool", name="x", spec={}, account=account)
    assert pointers(caught) == ["/account"]
    assert not Pool.objects.filter(name="x").exists()


@pytest.mark.parametrize(
    ("kind", "spec"),
    [("Region", {"title": "X"}), ("LoadBalancer", {"fleets": ["us-central1"]}), ("Account", {"title": "X"})],
)
def test_customers_do_not_change_the_platform(tutorial_env: Actor, acme: Actor, kind: str, spec: Spec) -> None:
    with pytest.raises(Forbidden):
        save_object(actor=acme, kind=kind, name="x", spec=spec)


def test_a_viewer_changes_nothing(tutorial_env: Actor, acme: Actor) -> None:
    viewer = Actor("looks", acme.account, "viewer")
    with pytest.raises(Forbidden):
        delete_object(actor=viewer, kind="Route", name="shop")


def test_a_port_in_use_on_the_same_fleet_is_refused_with_its_field(tutorial_env: Actor) -> None:
    spec = {"fleets": ["us-central1"], "listeners": [{"name": "x", "protocol": "http", "port": 8080}]}
    with pytest.raises(Invalid) as caught:
        save_object(actor=tutorial_env, kind="LoadBalancer", name="second", spec=spec)
    assert pointers(caught) == ["/spec/listeners/0/port"]
    assert "listener http of front" in caught.value.field_errors[0].detail
    spec["listeners"] = [{"name": "x", "protocol": "http", "port": 8081}]
    assert save_object(actor=tutorial_env, kind="LoadBalancer", name="second", spec=spec).pk


def test_a_route_that_matches_the_same_requests_as_another_is_refused(tutorial_env: Actor, acme: Actor) -> None:
    with pytest.raises(Invalid) as caught:
        save_object(actor=acme, kind="Route", name="twin", spec=spec_of(acme, "checkout"))
    assert pointers(caught) == ["/spec/path"]
    assert "checkout" in caught.value.field_errors[0].detail
    assert save_object(actor=acme, kind="Route", name="twin", spec=spec_of(acme, "checkout") | {"methods": ["PUT"]}).pk


def test_loopback_needs_a_local_development_fleet(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=tutorial_env, kind="Region", name="far", spec={"title": "Far"})
    save_object(actor=tutorial_env, kind="Fleet", name="far", spec={"region": "far"})
    spec = {"backends": [{"region": "far", "servers": [{"name": "s", "address": "127.0.0.1", "port": 80}]}]}
    with pytest.raises(Invalid) as caught:
        save_object(actor=acme, kind="Pool", name="x", spec=spec)
    assert pointers(caught) == ["/spec/backends/0/servers/0/address"]


def test_a_server_keeps_its_id_as_long_as_it_keeps_its_name(tutorial_env: Actor, acme: Actor) -> None:
    pool = selectors.pools(acme).get(name="shop")
    spec = copy.deepcopy(describe(pool))
    servers = spec["backends"][1]["servers"]
    first, second = servers[0], servers[1]
    ids = dict(Server.objects.filter(backend__pool=pool).values_list("name", "pk"))
    first["port"], second["port"] = second["port"], first["port"]
    save_object(actor=acme, kind="Pool", name="shop", spec=spec)
    assert dict(Server.objects.filter(backend__pool=pool).values_list("name", "pk")) == ids
    assert describe(selectors.pools(acme).get(name="shop")) == spec


def test_setting_a_server_raises_the_generation_of_its_region_only(tutorial_env: Actor, acme: Actor) -> None:
    before = dict(Fleet.objects.values_list("name", "desired_generation"))
    server = Server.objects.get(name="us-vm-1", account=acme.account)
    set_server(actor=acme, server_id=server.pk, state="drain", weight=7)
    after = dict(Fleet.objects.values_list("name", "desired_generation"))
    assert after == before | {"us-central1": before["us-central1"] + 1}
    assert Pool.objects.get(name="shop").version == 2
    set_server(actor=acme, server_id=server.pk, state="drain")
    assert dict(Fleet.objects.values_list("name", "desired_generation")) == after


@pytest.mark.parametrize("wrong", [{"state": "dead"}, {"weight": 257}, {"weight": "1"}, {"state": True}])
def test_setting_a_server_to_nonsense_is_refused_by_field(tutorial_env: Actor, acme: Actor, wrong: Spec) -> None:
    server = Server.objects.filter(account=acme.account).first()
    assert server is not None
    with pytest.raises(Invalid) as caught:
        set_server(actor=acme, server_id=server.pk, **wrong)
    assert pointers(caught) == [f"/{next(iter(wrong))}"]


def test_a_foreign_server_does_not_exist(tutorial_env: Actor, acme: Actor, globex: Actor) -> None:
    server = Server.objects.filter(account=acme.account).first()
    assert server is not None
    with pytest.raises(NotFound):
        set_server(actor=globex, server_id=server.pk, weight=0)


def test_a_private_key_is_sealed_and_shown_nowhere(tutorial_env: Actor, acme: Actor) -> None:
    chain, key = pem_pair("shop.acme.example")
    row = save_object(actor=acme, kind="Certificate", name="shop", spec={"chain": chain, "key": key})
    secret = key.splitlines()[1]
    assert secret.encode() not in bytes(row.encrypted_key)
    assert secret not in json.dumps(list(Entry.objects.values("before", "after")))
    assert secret not in json.dumps(describe(row))
    spec = {"fleets": ["us-central1", "europe-west1"], "listeners": [
        {"name": "http", "protocol": "http", "port": 8080},
        {"name": "https", "protocol": "https", "port": 8443, "certificates": ["acme/shop"]},
    ]}  # fmt: skip
    save_object(actor=tutorial_env, kind="LoadBalancer", name="front", spec=spec)
    snapshot, _ = freeze(Fleet.objects.get(name="us-central1").pk)
    assert secret in snapshot.certificates[0].pem


@pytest.mark.parametrize("case", ["mismatch", "expired", "no_names", "garbage", "two_keys", "missing"])
def test_a_certificate_that_cannot_work_is_refused(tutorial_env: Actor, acme: Actor, case: str) -> None:
    chain, key = pem_pair(*([] if case == "no_names" else ["a.acme.example"]), days=-1 if case == "expired" else 9)
    other = pem_pair("b.acme.example")[1]
    spec = {
        "mismatch": {"chain": chain, "key": other},
        "garbage": {"chain": chain.replace("MII", "AAA"), "key": key},
        "two_keys": {"chain": chain + key, "key": other},
        "missing": {"chain": chain},
    }.get(case, {"chain": chain, "key": key})
    with pytest.raises(Invalid) as caught:
        save_object(actor=acme, kind="Certificate", name="x", spec=spec)
    assert set(pointers(caught)) <= {"/spec/chain", "/spec/key"}
    assert key.splitlines()[1] not in caught.value.detail
    assert not Certificate.objects.exists()


def test_lists_and_snapshots_ask_the_same_number_of_questions_whatever_their_size(
    tutorial_env: Actor, acme: Actor, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    def look(rows: int) -> None:
        with django_assert_num_queries(3):
            assert (
                len([describe(row) for row in selectors.page_of_routes(selectors.routes(acme), limit=500).rows]) == rows
            )
        with django_assert_num_queries(4):  # one of them whether anything is shared with the account
            assert [describe(row) for row in selectors.pools(acme)]
        with django_assert_num_queries(7):
            assert [describe(row) for row in selectors.load_balancers(tutorial_env)]
        with django_assert_num_queries(1):
            selectors.route_conflicts(acme, spec_of_shop)
        with django_assert_num_queries(30):
            freeze(fleet)

    spec_of_shop, fleet = spec_of(acme, "shop"), Fleet.objects.get(name="us-central1").pk
    look(3)
    for number in range(20):
        save_object(actor=acme, kind="Route", name=f"r{number}", spec=spec_of_shop | {"path": f"/r{number}"})
    look(23)


@pytest.mark.both_engines
def test_pages_of_routes_show_each_route_once(tutorial_env: Actor, acme: Actor) -> None:
    spec = spec_of(acme, "shop")
    for number in range(7):
        save_object(actor=acme, kind="Route", name=f"r{number}", spec=spec | {"path": f"/r{number}"})
    seen: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        page = selectors.page_of_routes(selectors.routes(acme), limit=3, cursor=cursor)
        seen += [row.pk for row in page.rows]
        cursor = page.next_cursor
    assert seen == [row.pk for row in selectors.routes(acme)]


@pytest.mark.parametrize("cursor", ["x", "e30", "W10", "WyJhIiwiYiIsIjEiXQ", "\0"])
def test_a_false_cursor_is_refused(tutorial_env: Actor, acme: Actor, cursor: str) -> None:
    with pytest.raises(Invalid):
        selectors.page_of_routes(selectors.routes(acme), limit=3, cursor=cursor)


def test_a_preview_shows_the_map_line_of_the_route_and_stores_nothing(tutorial_env: Actor, acme: Actor) -> None:
    spec = spec_of(acme, "shop") | {"path": "/new"}
    shown = preview_route(acme, spec, "new")
    assert any("shop.acme.example/new/ route-0" in line for line in shown["maps"])
    assert "If-Match" in shown["curl"]
    assert not Route.objects.filter(name="new").exists()


def test_conflicts_tell_who_else_matches(tutorial_env: Actor, acme: Actor) -> None:
    kinds = {conflict.label: conflict.kind for conflict in selectors.route_conflicts(acme, spec_of(acme, "checkout"))}
    assert kinds == {"acme/shop": "takes_part", "acme/checkout": "identical"}
    foreign = {"hostname": "api.globex.example"}
    taken = selectors.route_conflicts(tutorial_env, foreign, account=acme.account)
    assert ("taken", None) in [(conflict.kind, conflict.route_id) for conflict in taken]
    assert selectors.route_conflicts(acme, foreign) == [], "whose name it is, is not a customer's to know"


def test_a_load_balancer_that_loses_a_fleet_pushes_to_it_as_well(tutorial_env: Actor) -> None:
    before = generation()
    row = LoadBalancer.objects.get(name="front")
    spec = describe(row) | {"fleets": ["europe-west1"]}
    save_object(actor=tutorial_env, kind="LoadBalancer", name="front", spec=spec)
    assert generation() == before + 1
