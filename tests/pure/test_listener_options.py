"""What clouds make of the options of listeners: their own TLS policies, and what is lost or refused with a reason."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from apps.compiler.bundle import for_people
from apps.compiler.compile import compile_snapshot, compile_stack
from apps.compiler.model.access import ConnectionAccess
from apps.compiler.model.capabilities import NodeBuild
from apps.compiler.model.listener_options import (
    Cache,
    ClientAddress,
    ClientCertificates,
    ClientProtocol,
    ClientVerify,
    Compression,
    ConnectionLimit,
    Connections,
    ListenerOptions,
    ListenerTls,
    ProtocolRoute,
    SniRoute,
    TlsPreset,
    TlsVersion,
    Tracing,
)
from apps.compiler.model.shared import Certificate, Listener, Protocol, Redirect, Route
from apps.compiler.model.stack import Cloud, StackSnapshot
from apps.compiler.portability.capabilities import CAPABILITIES
from apps.compiler.portability.incompatibilities import Severity
from tests.authorities import Authority
from tests.golden.test_aws_documents import CASES
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, route, snapshot
from tests.pure.google_fixtures import everything

AWS, GOOGLE = CASES["static_ips_and_dns"], everything()
MODERN, INTERMEDIATE = ListenerTls(TlsPreset.MODERN), ListenerTls(TlsPreset.INTERMEDIATE)
FROM_PROXY, FROM_CDN = ClientAddress(("192.0.2.0/24",)), ClientAddress((), ("192.0.2.0/24",))
OF_CLIENTS = ClientCertificates(ClientVerify.OPTIONAL, "")
LOST: list[tuple[dict[str, Any], str, Severity]] = [
    ({"connections": Connections()}, "connections", Severity.LOSSY),
    ({"compression": Compression()}, "compression", Severity.LOSSY),
    ({"cache": Cache()}, "cache", Severity.LOSSY),
    ({"tracing": Tracing()}, "tracing", Severity.LOSSY),
    ({"monitor_path": "/up"}, "monitor_path", Severity.LOSSY),
    ({"tls": ListenerTls(same_certificate=True)}, "same_certificate", Severity.LOSSY),
    ({"tls": ListenerTls(session_tickets=False)}, "session_tickets", Severity.LOSSY),
    ({"client_address": FROM_CDN}, "forwarded_from", Severity.LOSSY),
    ({"client_address": FROM_PROXY}, "proxy_protocol", Severity.REFUSED),
    ({"access": ConnectionAccess(allow=("net-1",))}, "access", Severity.REFUSED),
    ({"client_limit": ConnectionLimit(connections=20)}, "client_limit", Severity.REFUSED),
    ({"client_certificates": (OF_CLIENTS,)}, "client_certificates", Severity.REFUSED),
    ({"sni_routes": (SniRoute("db.example", "pool-1"),)}, "sni_routes", Severity.REFUSED),
    ({"protocol_routes": (ProtocolRoute("pool-1", ClientProtocol.SSH),)}, "protocol_routes", Severity.REFUSED),
]


def said(cloud: Cloud, one: Listener, *others: Listener) -> list[tuple[str, Severity]]:
    """Codes of what is lost of a listener on port 80."""
    found = CAPABILITIES[cloud].unsupported_in_listener(one, front(listeners=(one, *others)))
    return [(each.code, each.severity) for each in found]


@pytest.mark.parametrize("cloud", list(Cloud))
@pytest.mark.parametrize(("fields", "code", "severity"), LOST)
def test_what_a_cloud_does_not_do_is_said(cloud: Cloud, fields: dict[str, Any], code: str, severity: Severity) -> None:
    assert said(cloud, listener(1, port=80)) == []
    assert said(cloud, listener(1, port=80, **fields)) == [(code, severity)]


def test_every_option_is_decided_on_for_every_cloud() -> None:
    decided = {name for fields, _, _ in LOST for name in fields} | {"default_certificate_id"}
    assert decided == set(ListenerOptions.__slots__)


ENDED = listener(
    1, port=8883, protocol=Protocol.TCP, ends_tls=True, certificate_ids=("crt-1",), default_certificate_id="crt-1"
)


@pytest.mark.parametrize(
    ("alpn", "policy"),
    [
        ((), None),
        (("h2",), "HTTP2Only"),
        (("h2", "http/1.1"), "HTTP2Preferred"),
        (("http/1.1", "h2"), "HTTP2Optional"),
        (("mqtt",), None),
    ],
)
def test_an_nlb_ends_tls_and_offers_what_it_has_a_policy_for(alpn: tuple[str, ...], policy: str | None) -> None:
    wanted = replace(ENDED, tls=ListenerTls(alpn=alpn))
    assert said(Cloud.AWS, wanted) == ([("alpn", Severity.LOSSY)] if alpn and policy is None else [])
    assert said(Cloud.AWS, replace(wanted, tls=None, default_certificate_id=None)) == [("unknown_name", Severity.LOSSY)]
    front_of_tcp = replace(AWS.load_balancers[0], listeners=(replace(wanted, default_pool_id="pool-3"),))
    (found,) = compile_stack(replace(AWS, load_balancers=(front_of_tcp,))).output.resources["aws_lb_listener"].values()
    assert (found["protocol"], found.get("alpn_policy")) == ("TLS", policy)
    assert found["ssl_policy"].startswith("ELBSecurityPolicy-TLS13-1-2")


def test_google_is_not_asked_to_end_tls_of_tcp() -> None:
    assert said(Cloud.GOOGLE, ENDED) == [("tcp_tls", Severity.REFUSED)]


@pytest.mark.parametrize("cloud", list(Cloud))
def test_http2_and_the_default_certificate_are_said_where_they_differ(cloud: Cloud) -> None:
    secure = listener(1, port=443, protocol=Protocol.HTTPS, certificate_ids=("crt-1",), default_certificate_id="crt-1")
    without = replace(secure, tls=ListenerTls(http2=False))
    assert said(cloud, secure) == []
    assert said(cloud, replace(secure, default_certificate_id=None)) == [("unknown_name", Severity.LOSSY)]
    alone = [("http2", Severity.LOSSY)] if cloud is Cloud.GOOGLE else []
    assert said(cloud, without) == alone
    assert said(cloud, without, replace(secure, id="lst-2")) == [("http2", Severity.LOSSY)]


def secured(whole: StackSnapshot, tls: ListenerTls | None) -> str:
    """The document of a stack whose https listeners all say this."""
    fronts = tuple(
        replace(
            each,
            listeners=tuple(replace(one, tls=tls) if one.protocol is Protocol.HTTPS else one for one in each.listeners),
        )
        for each in whole.load_balancers
    )
    return json.dumps(compile_stack(replace(whole, load_balancers=fronts)).output.as_json())


@pytest.mark.parametrize(
    ("tls", "aws", "google"),
    [
        (None, "TLS13-1-2-2021-06", "TLS_1_2"),
        (INTERMEDIATE, "TLS13-1-2-Res-2021-06", "TLS_1_2"),
        (MODERN, "TLS13-1-3-2021-06", "TLS_1_3"),
        (ListenerTls(minimum_version=TlsVersion.V13), "TLS13-1-3-2021-06", "TLS_1_3"),
    ],
)
def test_a_preset_is_a_policy_of_the_cloud(tls: ListenerTls | None, aws: str, google: str) -> None:
    assert f'"ssl_policy": "ELBSecurityPolicy-{aws}"' in secured(AWS, tls)
    text = secured(GOOGLE, tls)
    assert f'"min_tls_version": "{google}"' in text
    assert text.count('"min_tls_version"') == 1


def test_an_alb_leaves_http2_out_where_all_its_listeners_do() -> None:
    assert '"enable_http2": false' in secured(AWS, ListenerTls(http2=False))
    assert "enable_http2" not in secured(AWS, None)


def test_google_serves_http3_and_an_alb_says_that_it_does_not() -> None:
    assert '"quic_override": "ENABLE"' in secured(GOOGLE, ListenerTls(http3=True))
    assert "quic_override" not in secured(GOOGLE, ListenerTls())
    secure = listener(1, port=443, protocol=Protocol.HTTPS, certificate_ids=("crt-1",), default_certificate_id="crt-1")
    wanted = replace(secure, tls=ListenerTls(http3=True))
    assert (said(Cloud.AWS, wanted), said(Cloud.GOOGLE, wanted)) == ([("http3", Severity.LOSSY)], [])


OLD, ABLE, BARE = NodeBuild("us-1", (2, 6)), NodeBuild("us-2", (3, 2), http3=True), NodeBuild("us-3", (3, 0))


@pytest.mark.parametrize(
    ("builds", "said_of_it"),
    [
        ((ABLE,), ""),
        ((ABLE, replace(ABLE, node="us-4")), ""),
        ((ABLE, OLD), "not on us-1 (HAProxy 2.6)"),
        ((OLD, ABLE, BARE), "not on us-1 (HAProxy 2.6), us-3 (HAProxy 3.0)"),
        ((), "but no node of the fleet has reported one"),
    ],
)
def test_http3_is_offered_where_every_node_speaks_it(builds: tuple[NodeBuild, ...], said_of_it: str) -> None:
    wanted = listener(1, port=443, protocol=Protocol.HTTPS, tls=ListenerTls(http3=True), certificate_ids=("crt-1",))
    certificate = Certificate("crt-1", "house", "acme", certificate_pem("a.example"), ("a.example",))
    whole = snapshot(front(route(1), listeners=(wanted,)), certificates=(certificate,), builds=builds)
    compiled = compile_snapshot(whole)
    text = compiled.output.files["haproxy.cfg"].decode()
    messages = [each.message for each in compiled.warnings if each.code == "http3"]
    binds = json.loads(compiled.output.files["manifest.json"])["binds"]
    assert compiled.left_out == ()
    if said_of_it:
        needed = (
            f"HTTP/3 needs HAProxy 2.8 or later with QUIC on each node, {said_of_it}; clients use HTTP/2 meanwhile."
        )
        assert messages == [needed]
        assert not [word for word in ("HTTP3", "cluster-secret", "Alt-Svc") if word in text]
    else:
        assert messages == []
        bind = 'bind "${SPILLWAY_HTTP3_LST_1-unset}" ssl crt-list certs/lst-1.list strict-sni alpn h3 no-tls-tickets\n'
        assert text.count(bind) == 1
    assert [each.get("http3") for each in binds] == [None if said_of_it else True]


def test_the_secret_of_quic_is_not_shown_to_people() -> None:
    wanted = listener(1, port=443, protocol=Protocol.HTTPS, tls=ListenerTls(http3=True), certificate_ids=("crt-1",))
    certificate = Certificate("crt-1", "house", "acme", certificate_pem("a.example"), ("a.example",))
    whole = snapshot(front(route(1), listeners=(wanted,)), certificates=(certificate,), builds=(ABLE,))
    secrets = []
    for key in ("one", "other"):
        content = compile_snapshot(replace(whole, overflow_key=key)).output.files["haproxy.cfg"]
        secrets += re.findall(r"cluster-secret ([0-9a-f]{64})", content.decode())
        assert "cluster-secret (not shown)" in for_people(content)
        assert secrets[-1] not in for_people(content)
    assert len(set(secrets)) == 2


REQUIRED = ClientCertificates(ClientVerify.REQUIRED, Authority().pem, hostnames=("b.example",))
PLAIN = listener(1, port=80)
SECURE = listener(2, port=443, protocol=Protocol.HTTPS, certificate_ids=("crt-1",), client_certificates=(REQUIRED,))


def warned(*routes: Route, of: Listener = SECURE) -> list[str]:
    """Listeners of which it is said that they serve hosts without the certificate that another one needs."""
    certificate = Certificate("crt-1", "house", "acme", certificate_pem("b.example"), ("b.example",))
    compiled = compile_snapshot(snapshot(front(*routes, listeners=(PLAIN, of)), certificates=(certificate,)))
    return [each.object_id for each in compiled.warnings if each.code == "client_certificates"]


def test_a_host_that_is_open_elsewhere_is_warned_of() -> None:
    assert warned(route(1, "b.example")) == ["lst-1"]
    assert warned(route(1, "a.example")) == []
    assert warned(route(1, "b.example", scheme="https")) == []
    assert warned(route(1, "b.example", scheme="https"), route(2, "b.example", "/x", scheme="http")) == ["lst-1"]
    redirect = route(2, "b.example", scheme="http", redirect=Redirect(301, scheme="https"))
    assert warned(route(1, "b.example", scheme="https"), redirect) == []
    optional = replace(SECURE, client_certificates=(replace(REQUIRED, mode=ClientVerify.OPTIONAL),))
    assert warned(route(1, "b.example"), of=optional) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"client_certificates": (REQUIRED, REQUIRED)},
        {"client_certificates": (replace(REQUIRED, ca="\n"),)},
        {"client_certificates": (replace(REQUIRED, crl="x"),)},
        {"client_certificates": (replace(REQUIRED, hostnames=("a b",)),)},
        {"default_certificate_id": "crt-1"},
    ],
)
def test_a_listener_that_says_something_else_of_clients_is_left_out(fields: dict[str, Any]) -> None:
    wrong = replace(SECURE, **fields)
    compiled = compile_snapshot(snapshot(front(route(1), listeners=(PLAIN, wrong))))
    assert "lst-2" in {each.object_id for each in compiled.left_out}


@pytest.mark.parametrize(
    ("hostname", "covered"),
    [("a.example", True), ("x.w.example", True), ("*.w.example", True), ("*.example", True), ("b.other", False)],
)
def test_a_name_that_no_certificate_of_a_tcp_listener_covers_is_said(hostname: str, covered: bool) -> None:
    names = ("a.example", "*.w.example")
    known = Certificate("crt-1", "house", "acme", certificate_pem(*names), names)
    one = replace(ENDED, default_certificate_id=None, sni_routes=(SniRoute(hostname, "pool-1"),))
    others = (
        replace(one, default_certificate_id="crt-1"),
        replace(one, sni_routes=(SniRoute(hostname, "pool-1", passthrough=True),), default_pool_id="pool-1"),
    )

    def warned(wanted: Listener) -> bool:
        given = snapshot(front(listeners=(wanted,)), pools=(pool(1, protocol=Protocol.TCP),), certificates=(known,))
        return "name_without_certificate" in {each.code for each in compile_snapshot(given).warnings}

    assert warned(one) is not covered
    assert not any(map(warned, others))
