"""What clouds make of the options of listeners: their own TLS policies, and what is lost or refused with a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from apps.compiler.compile import compile_stack
from apps.compiler.model.listener_options import (
    ClientAddress,
    Compression,
    Connections,
    ListenerOptions,
    ListenerTls,
    SniRoute,
    TlsPreset,
    TlsVersion,
)
from apps.compiler.model.shared import Listener, Protocol
from apps.compiler.model.stack import Cloud, StackSnapshot
from apps.compiler.portability.capabilities import CAPABILITIES
from apps.compiler.portability.incompatibilities import Severity
from tests.golden.test_aws_documents import CASES
from tests.pure.compiler_fixtures import front, listener
from tests.pure.google_fixtures import everything

AWS, GOOGLE = CASES["static_ips_and_dns"], everything()
MODERN, INTERMEDIATE = ListenerTls(TlsPreset.MODERN), ListenerTls(TlsPreset.INTERMEDIATE)
FROM_PROXY, FROM_CDN = ClientAddress(("192.0.2.0/24",)), ClientAddress((), ("192.0.2.0/24",))
LOST: list[tuple[dict[str, Any], str, Severity]] = [
    ({"connections": Connections()}, "connections", Severity.LOSSY),
    ({"compression": Compression()}, "compression", Severity.LOSSY),
    ({"monitor_path": "/up"}, "monitor_path", Severity.LOSSY),
    ({"client_address": FROM_CDN}, "forwarded_from", Severity.LOSSY),
    ({"client_address": FROM_PROXY}, "proxy_protocol", Severity.REFUSED),
    ({"sni_routes": (SniRoute("db.example", "pool-1"),)}, "sni_routes", Severity.REFUSED),
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
    decided = {name for fields, _, _ in LOST for name in fields} | {"tls", "default_certificate_id"}
    assert decided == set(ListenerOptions.__slots__)


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
