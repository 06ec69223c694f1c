"""What listeners are told beyond their port is stored, described as it was sent, and frozen for the nodes."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import (
    ClientAddress,
    ClientCertificates,
    ClientProtocol,
    ClientVerify,
    Compression,
    ConnectionLimit,
    Connections,
    KeepAlive,
    ListenerTls,
    ProtocolRoute,
    SniRoute,
    TlsPreset,
    TlsVersion,
)
from apps.compiler.model.node_settings import NodeSettings
from apps.compiler.model.shared import Listener as Frozen
from apps.core.errors import Conflict, Invalid, SpillwayError
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Certificate, Listener, LoadBalancer
from apps.definitions.reading.describing import describe
from apps.definitions.selectors import load_balancers
from apps.definitions.services import delete_object, save_object
from apps.fleet.models import Fleet
from apps.web.load_balancers.listener_settings import settings_of
from tests.apps.test_definitions_services import pem_pair
from tests.authorities import Authority

PLAIN = {"name": "http", "protocol": "http", "port": 8080}
HTTPS = {"name": "https", "protocol": "https", "port": 8443, "certificates": ["house"]}
OF_HTTP: dict[str, Any] = {
    "client_address": {
        "proxy_protocol_from": ["192.0.2.0/24"],
        "forwarded_from": ["198.51.100.0/24", "2001:db8::/48"],
        "forwarded_header_from": ["203.0.113.0/24"],
        "send_forwarded": True,
    },
    "connections": {
        "max_connections": 500, "client_timeout_ms": 30_000, "request_timeout_ms": 5000, "keepalive_timeout_ms": 9000,
        "keep_alive": "clients",
    },
    "client_limit": {"connections": 20, "burst": 50, "exempt": ["192.0.2.0/24"], "log_only": True},
    "compression": {"types": ["text/html"]},
    "cache": {"total_mb": 8, "max_object_bytes": 4096, "max_age_s": 30},
    "monitor_path": "/up",
}  # fmt: skip
OF_HTTPS: dict[str, Any] = {
    "tls": {
        "preset": "intermediate", "minimum_version": "1.3", "http2": False, "http3": True, "same_certificate": True,
        "session_tickets": False,
    },
    "default_certificate": "house",
}  # fmt: skip


def save(actor: Actor, *listeners: dict[str, Any]) -> LoadBalancer:
    """The tutorial's load balancer with these listeners."""
    spec = {"fleets": ["us-central1", "europe-west1"], "listeners": list(listeners)}
    row: LoadBalancer = save_object(actor=actor, kind="LoadBalancer", name="front", spec=spec)
    return row


def described(actor: Actor) -> dict[str, Any]:
    """Listener → its document."""
    return {each["name"]: each for each in describe(load_balancers(actor).get(name="front"))["listeners"]}


def frozen() -> dict[str, Frozen]:
    """Listener → what the nodes are told."""
    (front,) = snapshot_of(Fleet.objects.get(name="us-central1")).load_balancers
    return {each.label: each for each in front.listeners}


@pytest.fixture
def house(tutorial_env: Actor) -> Certificate:
    chain, key = pem_pair("console.spillway.example")
    spec = {"chain": chain, "key": key}
    row: Certificate = save_object(actor=tutorial_env, kind="Certificate", name="house", spec=spec)
    return row


def test_options_are_kept_described_and_frozen(tutorial_env: Actor, house: Certificate) -> None:
    save(tutorial_env, PLAIN | OF_HTTP, HTTPS | OF_HTTPS)
    documents = described(tutorial_env)
    assert {name: documents["http"][name] for name in OF_HTTP} == OF_HTTP
    assert {name: documents["https"][name] for name in OF_HTTPS} == OF_HTTPS
    web, secure = frozen()["http"], frozen()["https"]
    assert web.client_address == ClientAddress(
        ("192.0.2.0/24",),
        ("198.51.100.0/24", "2001:db8::/48"),
        forwarded_header_from=("203.0.113.0/24",),
        send_forwarded=True,
    )
    assert web.connections == Connections(500, 30_000, 5000, 9000, KeepAlive.CLIENTS)
    limit = ConnectionLimit(connections=20, burst=50, exempt=("192.0.2.0/24",), log_only=True)
    assert web.client_limit == limit
    assert (web.compression, web.monitor_path) == (Compression(("text/html",)), "/up")
    assert secure.tls == ListenerTls(
        TlsPreset.INTERMEDIATE, TlsVersion.V13, http2=False, http3=True, same_certificate=True, session_tickets=False
    )
    assert secure.default_certificate_id == f"crt-{house.pk}"
    version = LoadBalancer.objects.get(name="front").version
    save(tutorial_env, PLAIN | OF_HTTP, HTTPS | OF_HTTPS)
    assert LoadBalancer.objects.get(name="front").version == version  # nothing has changed


def test_a_listener_that_says_nothing_is_described_and_frozen_as_it_always_was(tutorial_env: Actor, house: Any) -> None:
    save(tutorial_env, PLAIN | OF_HTTP, HTTPS | OF_HTTPS)
    save(tutorial_env, PLAIN, HTTPS)
    assert not {*OF_HTTP, *OF_HTTPS} & {*described(tutorial_env)["http"], *described(tutorial_env)["https"]}
    plain = Frozen("", "", frozen()["http"].protocol, 1)
    assert {getattr(frozen()["http"], name) for name in OF_HTTP} == {getattr(plain, name) for name in OF_HTTP}
    assert (frozen()["https"].tls, frozen()["https"].default_certificate_id) == (None, None)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"client_address": OF_HTTP["client_address"]}, "client_address"),
        ({"client_certificates": [{"mode": "optional", "ca": Authority().pem}]}, "client_certificates"),
    ],
)
def test_http3_does_not_go_with_what_it_cannot_carry(
    tutorial_env: Actor, house: Certificate, fields: dict[str, Any], where: str
) -> None:
    save(tutorial_env, HTTPS | fields | {"tls": {"http3": False}})
    with pytest.raises(Invalid) as caught:
        save(tutorial_env, HTTPS | fields | {"tls": {"http3": True}})
    assert [(each.pointer, each.code) for each in caught.value.field_errors] == [
        (f"/spec/listeners/0/{where}", "http3")
    ]


def test_a_row_that_says_nothing_meaningful_is_named_and_left_out(tutorial_env: Actor) -> None:
    save(tutorial_env, PLAIN, PLAIN | {"name": "other", "port": 8081})
    Listener.objects.filter(name="other").update(client_address={"forwarded_from": ["0.0.0.0/0"]})
    assert list(frozen()) == ["http"]
    unreadable = snapshot_of(Fleet.objects.get(name="us-central1")).unreadable
    assert [(each.id, each.label) for each in unreadable] == [(f"lst-{Listener.objects.get(name='other').pk}", "other")]


def test_a_default_certificate_is_not_deleted(tutorial_env: Actor, house: Certificate) -> None:
    save(tutorial_env, PLAIN, HTTPS | OF_HTTPS)
    with pytest.raises(Conflict):
        delete_object(actor=tutorial_env, kind="Certificate", name="house")


ISSUER, OTHER_ISSUER = Authority("Issuer"), Authority("Other issuer")
OF_CLIENTS: list[dict[str, Any]] = [
    {"mode": "required", "ca": ISSUER.pem, "crl": ISSUER.revoked(), "hostnames": ["*.a.example", "b.example"]},
    {"mode": "optional", "ca": ISSUER.pem + OTHER_ISSUER.pem},
]


def test_what_is_asked_of_clients_is_kept_described_frozen_and_shown(tutorial_env: Actor, house: Certificate) -> None:
    save(tutorial_env, PLAIN, HTTPS | {"client_certificates": OF_CLIENTS})
    assert described(tutorial_env)["https"]["client_certificates"] == OF_CLIENTS
    first, second = frozen()["https"].client_certificates
    assert first == ClientCertificates(
        ClientVerify.REQUIRED, ISSUER.pem, OF_CLIENTS[0]["crl"], ("*.a.example", "b.example")
    )
    assert (second.mode, second.crl, second.hostnames) == (ClientVerify.OPTIONAL, "", ())
    shown = settings_of(load_balancers(tutorial_env).get(name="front").listeners.get(name="https"))
    assert shown == (
        ("Client certificates: Mode", "Required"),
        ("Client certificates: Issuers", "1 in PEM"),
        ("Client certificates: Revocation lists", "1 in PEM"),
        ("Client certificates: Hostnames", "*.a.example, b.example"),
        ("Client certificates: Mode", "Optional"),
        ("Client certificates: Issuers", "2 in PEM"),
    )
    save(tutorial_env, PLAIN, HTTPS)
    assert "client_certificates" not in described(tutorial_env)["https"]
    assert frozen()["https"].client_certificates == ()


def test_a_listener_whose_authorities_cannot_be_read_is_left_out(tutorial_env: Actor, house: Certificate) -> None:
    """Never served without them."""
    save(tutorial_env, PLAIN, HTTPS | {"client_certificates": OF_CLIENTS})
    Listener.objects.filter(name="https").update(client_certificates=[{"mode": "required", "ca": "none"}])
    assert list(frozen()) == ["http"]
    Listener.objects.filter(name="https").update(client_certificates={"mode": "required"})
    assert list(frozen()) == ["http"]


ONE = {"mode": "required", "ca": ISSUER.pem}
NOT_OF_CLIENTS: list[tuple[Any, str, str]] = [
    ([{"ca": ISSUER.pem}], "/0/mode", "missing"),
    ([ONE | {"ca": ""}], "/0/ca", "pem"),
    ([ONE | {"ca": ISSUER.signed("leaf").partition("-----BEGIN PRIVATE")[0]}], "/0/ca", "no_authority"),
    ([ONE | {"crl": "x"}], "/0/crl", "pem"),
    ([ONE | {"crl": ISSUER.pem}], "/0/crl", "pem"),
    ([ONE | {"crl": OTHER_ISSUER.revoked()}], "/0/crl", "issuer"),
    ([ONE | {"crl": Authority("Issuer").revoked()}], "/0/crl", "issuer"),
    ([ONE | {"ca": ISSUER.pem + OTHER_ISSUER.pem, "crl": ISSUER.revoked()}], "/0/crl", "missing"),
    ([ONE, ONE], "", "twice"),
    ([ONE | {"hostnames": ["a.example"]}, ONE | {"hostnames": ["b.example", "a.example"]}], "", "twice"),
    ([ONE] * 17, "", "too_many"),
]


@pytest.mark.parametrize(("entries", "pointer", "code"), NOT_OF_CLIENTS)
def test_what_is_wrong_with_client_certificates_is_said(
    tutorial_env: Actor, house: Certificate, entries: Any, pointer: str, code: str
) -> None:
    with pytest.raises(Invalid) as caught:
        save(tutorial_env, HTTPS | {"client_certificates": entries})
    expected = (f"/spec/listeners/0/client_certificates{pointer}", code)
    assert [(each.pointer, each.code) for each in caught.value.field_errors] == [expected]


def test_a_default_certificate_does_not_go_with_hostnames(tutorial_env: Actor, house: Certificate) -> None:
    """Who asks for an unknown name would be verified by the authorities of another host."""
    listener = HTTPS | {"default_certificate": "house"}
    with pytest.raises(Invalid) as caught:
        save(tutorial_env, listener | {"client_certificates": OF_CLIENTS})
    assert [each.code for each in caught.value.field_errors] == ["default_certificate"]
    save(tutorial_env, listener | {"client_certificates": [ONE]})
    with pytest.raises(Invalid):
        save(tutorial_env, PLAIN | {"client_certificates": [ONE]})


WRONG: list[tuple[dict[str, Any], str, str]] = [
    (PLAIN | {"tls": {}}, "/tls", "protocol"),
    (HTTPS | {"tls": {"preset": "modern", "minimum_version": "1.2"}}, "/tls/minimum_version", "tls_version"),
    (HTTPS | {"tls": {"preset": "old"}}, "/tls/preset", "choice"),
    (HTTPS | {"default_certificate": "other"}, "/default_certificate", "unknown"),
    (PLAIN | {"client_address": {}}, "/client_address", "missing"),
    (PLAIN | {"client_address": {"forwarded_from": ["0.0.0.0/0"]}}, "/client_address/forwarded_from/0", "too_wide"),
    (PLAIN | {"client_address": {"forwarded_from": ["::/0"]}}, "/client_address/forwarded_from/0", "too_wide"),
    (
        PLAIN | {"client_address": {"proxy_protocol_from": ["192.0.2.1"]}},
        "/client_address/proxy_protocol_from/0",
        "network_spelling",
    ),
    (PLAIN | {"compression": {"types": []}}, "/compression/types", "missing"),
    (PLAIN | {"compression": {"types": ["text/html; charset=utf-8"]}}, "/compression/types/0", "media_type"),
    (PLAIN | {"monitor_path": "up"}, "/monitor_path", "path_start"),
    (PLAIN | {"connections": {"max_connections": 0}}, "/connections/max_connections", "out_of_range"),
    (PLAIN | {"client_limit": {"per": "minute"}}, "/client_limit/connections", "missing"),
    (PLAIN | {"client_limit": {"connections": 5, "burst": 4}}, "/client_limit/burst", "too_small"),
    (PLAIN | {"client_limit": {"connections": 5, "key": "header"}}, "/client_limit/key", "unknown_field"),
    (PLAIN | {"client_limit": {"connections": 5, "exempt": ["all\n"]}}, "/client_limit/exempt/0", "network"),
]
TCP = {"name": "tcp", "protocol": "tcp", "port": 8090, "default_pool": "acme/shop"}
NOT_TCP: list[tuple[str, dict[str, Any]]] = [
    ("connections", {"request_timeout_ms": 5}),
    ("client_address", {"forwarded_from": ["192.0.2.0/24"]}),
    ("compression", {}),
    ("client_limit", {"connections": 5, "log_only": True}),
    ("tls", {}),
]


@pytest.mark.parametrize(("listener", "pointer", "code"), WRONG)
def test_what_is_wrong_is_said_where_it_stands(
    tutorial_env: Actor, house: Certificate, listener: dict[str, Any], pointer: str, code: str
) -> None:
    with pytest.raises(Invalid) as caught:
        save(tutorial_env, listener)
    assert [(each.pointer, each.code) for each in caught.value.field_errors] == [(f"/spec/listeners/0{pointer}", code)]


@pytest.mark.parametrize(("field", "value"), NOT_TCP)
def test_a_listener_of_tcp_has_no_requests(tutorial_env: Actor, field: str, value: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        save(tutorial_env, TCP | {field: value})
    assert (f"/spec/listeners/0/{field}", "protocol") in [
        (each.pointer, each.code) for each in caught.value.field_errors
    ]


def test_node_settings_of_a_fleet_are_kept_described_and_frozen(tutorial_env: Actor) -> None:
    fleet = Fleet.objects.get(name="us-central1")
    spec = describe(fleet)
    assert "node_settings" not in spec
    assert snapshot_of(fleet).node_settings is None
    said = {"max_connections": 5000, "threads": 2, "tls_preset": "modern"}
    save_object(actor=tutorial_env, kind="Fleet", name="us-central1", spec=spec | {"node_settings": said})
    fleet.refresh_from_db()
    kept = describe(fleet)["node_settings"]
    assert kept == said | {"buffer_bytes": 16_384, "http2_streams": 100, "old_worker_timeout_ms": 30_000}
    assert snapshot_of(fleet).node_settings == NodeSettings(5000, 2, tls_preset=TlsPreset.MODERN)
    Fleet.objects.filter(pk=fleet.pk).update(node_settings={"threads": "2\n    maxconn 1"})
    fleet.refresh_from_db()
    assert snapshot_of(fleet).node_settings is None
    assert [each.field for each in snapshot_of(fleet).unreadable] == ["node_settings"]
    save_object(actor=tutorial_env, kind="Fleet", name="us-central1", spec=spec)
    fleet.refresh_from_db()
    assert fleet.node_settings is None


def test_customers_say_nothing_of_nodes(tutorial_env: Actor, acme: Actor) -> None:
    with pytest.raises(SpillwayError):
        save_object(actor=acme, kind="Fleet", name="us-central1", spec=describe(Fleet.objects.get(name="us-central1")))


DATABASE = {"protocol": "tcp", "backends": [{"region": "us-central1", "servers": []}]}
BY_NAME: dict[str, Any] = {
    "name": "tls", "protocol": "tcp", "port": 5432,
    "sni_routes": [
        {"hostname": "*.db.example", "pool": "acme/database"}, {"hostname": "db.example", "pool": "acme/database"},
    ],
}  # fmt: skip


def test_names_of_tls_lead_to_pools_that_stay_while_they_do(tutorial_env: Actor, acme: Actor) -> None:
    pool = save_object(actor=acme, kind="Pool", name="database", spec=DATABASE)
    save(tutorial_env, PLAIN, BY_NAME)
    passed_on = [each | {"passthrough": False} for each in BY_NAME["sni_routes"]]
    assert described(tutorial_env)["tls"]["sni_routes"] == passed_on
    key = f"pool-{pool.pk}"
    assert frozen()["tls"].sni_routes == (SniRoute("*.db.example", key), SniRoute("db.example", key))
    assert key in {each.id for each in snapshot_of(Fleet.objects.get(name="europe-west1")).pools}
    with pytest.raises(Conflict) as caught:
        delete_object(actor=acme, kind="Pool", name="database")
    assert "in use by 1 more" in str(caught.value)
    shown = settings_of(load_balancers(tutorial_env).get(name="front").listeners.get(name="tls"))
    assert shown == (("SNI routes: *.db.example", "acme/database"), ("SNI routes: db.example", "acme/database"))
    version = LoadBalancer.objects.get(name="front").version
    save(tutorial_env, PLAIN, BY_NAME)
    assert LoadBalancer.objects.get(name="front").version == version
    save(tutorial_env, PLAIN)
    delete_object(actor=acme, kind="Pool", name="database")


def _by_protocol(**route: str) -> dict[str, Any]:
    return {"sni_routes": [], "protocol_routes": [route]}


BY_PROTOCOL = BY_NAME | {
    "sni_routes": [],
    "protocol_routes": [{"alpn": "acme-tls/1", "pool": "acme/database"}, {"protocol": "ssh", "pool": "acme/database"}],
}


def test_routes_by_protocol_are_stored_frozen_shown_and_keep_their_pool(tutorial_env: Actor, acme: Actor) -> None:
    pool = save_object(actor=acme, kind="Pool", name="database", spec=DATABASE)
    save(tutorial_env, PLAIN, BY_PROTOCOL)
    assert described(tutorial_env)["tls"]["protocol_routes"] == BY_PROTOCOL["protocol_routes"]
    key = f"pool-{pool.pk}"
    assert frozen()["tls"].protocol_routes == (
        ProtocolRoute(key, alpn="acme-tls/1"), ProtocolRoute(key, ClientProtocol.SSH),
    )  # fmt: skip
    assert key in {each.id for each in snapshot_of(Fleet.objects.get(name="us-central1")).pools}
    with pytest.raises(Conflict) as caught:
        delete_object(actor=acme, kind="Pool", name="database")
    assert "in use by" in str(caught.value)
    shown = settings_of(load_balancers(tutorial_env).get(name="front").listeners.get(name="tls"))
    assert shown == (("Protocol routes: alpn:acme-tls/1", "acme/database"), ("Protocol routes: ssh", "acme/database"))
    save(tutorial_env, PLAIN)
    delete_object(actor=acme, kind="Pool", name="database")


def test_a_pool_that_connections_go_to_is_not_emptied_unasked(tutorial_env: Actor, acme: Actor) -> None:
    server = {"name": "s1", "address": "10.0.0.1", "port": 5432}
    filled = DATABASE | {"backends": [{"region": "us-central1", "servers": [server]}]}
    save_object(actor=acme, kind="Pool", name="database", spec=filled)
    save(tutorial_env, PLAIN, BY_PROTOCOL)
    with pytest.raises(Invalid) as caught:
        save_object(actor=acme, kind="Pool", name="database", spec=DATABASE)
    assert "in use by listener front/tls" in str(caught.value.field_errors)


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"sni_routes": [{"hostname": "db.example", "pool": "acme/shop"}]}, "/sni_routes/0/pool", "protocol"),
        ({"sni_routes": [{"hostname": "db.example", "pool": "acme/nobody"}]}, "/sni_routes/0/pool", "unknown"),
        ({"sni_routes": [{"hostname": "db", "pool": "acme/shop"}]}, "/sni_routes/0/hostname", "too_few_labels"),
        ({"sni_routes": []}, "/default_pool", "missing"),
        ({"protocol": "http"}, "/sni_routes", "protocol"),
        (_by_protocol(protocol="ssh", pool="acme/shop"), "/protocol_routes/0/pool", "protocol"),
        (_by_protocol(protocol="ssh", pool="acme/nobody"), "/protocol_routes/0/pool", "unknown"),
        (_by_protocol(protocol="smtp", pool="acme/database"), "/protocol_routes/0/protocol", "choice"),
        (_by_protocol(alpn="a b", pool="acme/database"), "/protocol_routes/0/alpn", "alpn"),
        (_by_protocol(pool="acme/database"), "/protocol_routes/0", "one_of"),
        (_by_protocol(protocol="tls", alpn="h2", pool="acme/database"), "/protocol_routes/0", "one_of"),
        (_by_protocol(protocol="ssh", pool="acme/database") | {"protocol": "http"}, "/protocol_routes", "protocol"),
    ],
)
def test_a_wrong_route_by_name_is_said_where_it_stands(
    tutorial_env: Actor, acme: Actor, change: dict[str, Any], pointer: str, code: str
) -> None:
    save_object(actor=acme, kind="Pool", name="database", spec=DATABASE)
    with pytest.raises(Invalid) as caught:
        save(tutorial_env, BY_NAME | change)
    assert (f"/spec/listeners/0{pointer}", code) in [(each.pointer, each.code) for each in caught.value.field_errors]


ENDED: dict[str, Any] = BY_NAME | {
    "certificates": ["house"],
    "default_pool": "acme/database",
    "sni_routes": [{"hostname": "db.example", "pool": "acme/database", "passthrough": True}],
    "tls": {"minimum_version": "1.3", "alpn": ["mqtt", "h2"]},
    "client_certificates": [ONE],
}


def test_a_listener_of_tcp_with_certificates_ends_tls(tutorial_env: Actor, acme: Actor, house: Certificate) -> None:
    save_object(actor=acme, kind="Pool", name="database", spec=DATABASE)
    save(tutorial_env, PLAIN, HTTPS, ENDED)
    document = described(tutorial_env)["tls"]
    assert {name: document[name] for name in ("certificates", "sni_routes")} == {
        name: ENDED[name] for name in ("certificates", "sni_routes")
    }
    assert (document["tls"]["alpn"], document["tls"]["minimum_version"]) == (["mqtt", "h2"], "1.3")
    found = frozen()["tls"]
    assert (found.ends_tls, found.certificate_ids) == (True, (f"crt-{house.pk}",))
    assert (found.tls, found.sni_routes[0].passthrough) == (
        ListenerTls(minimum_version=TlsVersion.V13, alpn=("mqtt", "h2")),
        True,
    )
    assert not frozen()["https"].ends_tls
    shown = settings_of(load_balancers(tutorial_env).get(name="front").listeners.get(name="tls"))
    assert ("SNI routes: db.example", "acme/database, TLS passed on") in shown
    assert [pair for pair in shown if pair[0].startswith("TLS: ")] == [
        ("TLS: Oldest TLS version", "TLS 1.3"),
        ("TLS: Session tickets", "yes"),
        ("TLS: ALPN", "mqtt, h2"),
    ]
    version = LoadBalancer.objects.get(name="front").version
    save(tutorial_env, PLAIN, HTTPS, ENDED)
    assert LoadBalancer.objects.get(name="front").version == version


def test_a_listener_that_ends_tls_is_never_opened_without(tutorial_env: Actor, acme: Actor, house: Certificate) -> None:
    save_object(actor=acme, kind="Pool", name="database", spec=DATABASE)
    save(tutorial_env, ENDED)
    Certificate.objects.filter(pk=house.pk).update(hostnames=[])  # which leaves it nothing that it could answer for
    found = frozen()["tls"]
    assert (found.ends_tls, found.certificate_ids) == (True, ())
    compiled = compile_snapshot(snapshot_of(Fleet.objects.get(name="us-central1")))
    assert ("no_certificate", f"lst-{Listener.objects.get(name='tls').pk}") in [
        (each.code, each.object_id) for each in compiled.left_out
    ]
    assert not any(each.listener_id.startswith("lst-") for each in compiled.output.binds)


def test_a_customers_certificate_is_presented_by_https_and_by_no_listener_of_tcp(
    tutorial_env: Actor, acme: Actor, house: Certificate
) -> None:
    """The control is the https listener, which presents it without being told."""
    save_object(actor=acme, kind="Pool", name="database", spec=DATABASE)
    chain, key = pem_pair("shop.acme.example")
    own = save_object(actor=acme, kind="Certificate", name="own", spec={"chain": chain, "key": key})
    save(tutorial_env, HTTPS, ENDED)
    assert frozen()["https"].certificate_ids == (f"crt-{house.pk}", f"crt-{own.pk}")
    assert frozen()["tls"].certificate_ids == (f"crt-{house.pk}",)


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"protocol": "http"}, "/certificates", "protocol"),
        ({"certificates": []}, "/sni_routes", "passthrough"),
        ({"protocol_routes": [{"protocol": "tls", "pool": "acme/database"}]}, "/protocol_routes", "protocol"),
        ({"protocol_routes": [{"alpn": "smtp", "pool": "acme/database"}]}, "/tls", "alpn"),
        ({"certificates": [], "sni_routes": [], "client_certificates": []}, "/tls", "protocol"),
        ({"certificates": [], "sni_routes": [], "tls": None}, "/client_certificates", "protocol"),
        ({"tls": {"http2": False}}, "/tls", "protocol"),
        ({"tls": {"alpn": ["h2 http/1.1"]}}, "/tls/alpn/0", "alpn"),
        ({"tls": {"alpn": ["x\n    bind :1"]}}, "/tls/alpn/0", "control_character"),
        ({"tls": {"alpn": ["h2,http/1.1"]}}, "/tls/alpn/0", "alpn"),
        ({"protocol": "https", "sni_routes": [], "default_pool": None}, "/tls", "protocol"),
    ],
)
def test_what_does_not_go_with_the_end_of_tls_is_said(
    tutorial_env: Actor, acme: Actor, house: Certificate, change: dict[str, Any], pointer: str, code: str
) -> None:
    save_object(actor=acme, kind="Pool", name="database", spec=DATABASE)
    with pytest.raises(Invalid) as caught:
        save(tutorial_env, ENDED | change)
    assert (f"/spec/listeners/0{pointer}", code) in [(each.pointer, each.code) for each in caught.value.field_errors]
