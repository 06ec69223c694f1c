"""What a pool says of its servers, in clouds: what is refused, what differs, and what is said there instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from apps.compiler.model.servers import (
    CheckKind,
    Connections,
    HttpVersion,
    OutlierEjection,
    OverflowMode,
    PersistBy,
    Persistence,
    ProxyProtocol,
    Retries,
    ServerTls,
    Verify,
)
from apps.compiler.model.shared import Balance, HealthCheck, Protocol, Server
from apps.compiler.model.stack import CloudBackend, CloudPool
from apps.compiler.targets.terraform.aws import groups
from apps.compiler.targets.terraform.aws import servers as aws
from apps.compiler.targets.terraform.google import servers as google
from apps.compiler.targets.terraform.google import services

TARGETS = {"aws": aws, "google": google}


def pool_with(**fields: Any) -> CloudPool:
    """A pool with a server in each of two regions, one of them a backup."""
    backends = tuple(
        CloudBackend(f"bkd-{number}", f"region-{number}", (Server(f"srv-{number}", "s", "10.0.0.1", 80),))
        for number in (1, 2)
    )
    known: dict[str, Any] = {"protocol": Protocol.HTTP, "balance": Balance.ROUNDROBIN, "backends": backends}
    return CloudPool(**({"id": "pool-1", "label": "acme/shop", "account": "acme"} | known | fields))


def said(target: str, **fields: Any) -> dict[str, bool]:
    """The fields that a target speaks of → whether it refuses the pool for them."""
    found = TARGETS[target].unsupported_on_the_way(pool_with(**fields))
    return {each.field: each.refused for each in found}


TCP = {"protocol": Protocol.TCP}
ROWS: tuple[tuple[Mapping[str, Any], Mapping[str, bool], Mapping[str, bool]], ...] = (
    ({}, {}, {}),
    ({"server_tls": ServerTls()}, {"server_tls.verify": False}, {"server_tls.verify": False}),
    ({"server_tls": ServerTls(Verify.NONE)}, {}, {}),
    (
        {"server_tls": ServerTls(Verify.NONE, client_certificate_id="crt-1")},
        {"server_tls.client_certificate": True},
        {"server_tls.client_certificate": True},
    ),
    ({"server_tls": ServerTls(), **TCP}, {"server_tls": True}, {"server_tls": True}),
    ({"http_version": HttpVersion.HTTP2}, {"http_version": False}, {"http_version": True}),
    ({"host_header": "a.example"}, {"host_header": True}, {"host_header": True}),
    ({"request_headers": (("X-A", "v"),)}, {"request_headers": True}, {"request_headers": True}),
    ({"proxy_protocol": ProxyProtocol.V2, **TCP}, {}, {"proxy_protocol": True}),
    ({"proxy_protocol": ProxyProtocol.V1, **TCP}, {"proxy_protocol": True}, {"proxy_protocol": True}),
    ({"proxy_protocol": ProxyProtocol.V2}, {"proxy_protocol": True}, {"proxy_protocol": True}),
    ({"persistence": Persistence()}, {"persistence.cookie": False}, {"persistence.cookie": False}),
    (
        {"persistence": Persistence(PersistBy.HEADER, header="X-User")},
        {"persistence.by": True},
        {"persistence.by": False},
    ),
    ({"persistence": Persistence(PersistBy.SOURCE), **TCP}, {}, {"persistence.by": False}),
    ({"slow_start_ms": 60_000}, {}, {"slow_start_ms": False}),
    ({"slow_start_ms": 60_000, "balance": Balance.LEASTCONN}, {"slow_start_ms": False}, {"slow_start_ms": False}),
    ({"outlier_ejection": OutlierEjection()}, {"outlier_ejection": False}, {}),
    ({"connections": Connections(5)}, {"connections": False}, {"connections": False}),
    ({"retries": Retries()}, {"retries": False}, {"retries": False}),
    ({"tunnel_timeout_ms": 5}, {"tunnel_timeout_ms": False}, {"tunnel_timeout_ms": False}),
    ({"overflow_mode": OverflowMode.NEVER}, {}, {"overflow.mode": False}),
    (
        {"health_check": HealthCheck(path="/up", expect_statuses=("200-599",))},
        {"health_check.expect_statuses": True},
        {"health_check.expect_statuses": False},
    ),
    (
        {"health_check": HealthCheck(kind=CheckKind.REDIS), **TCP},
        {"health_check.kind": False},
        {"health_check.kind": False},
    ),
)


@pytest.mark.parametrize(("fields", "on_aws", "on_google"), ROWS)
def test_a_cloud_says_what_it_refuses_and_what_differs(
    fields: Mapping[str, Any], on_aws: Mapping[str, bool], on_google: Mapping[str, bool]
) -> None:
    assert said("aws", **fields) == on_aws
    assert said("google", **fields) == on_google


def test_target_groups_say_what_they_can() -> None:
    pool = pool_with(
        server_tls=ServerTls(),
        persistence=Persistence(idle_s=600),
        slow_start_ms=5000,
        health_check=HealthCheck(path="/up", expect_statuses=("200-299", "304")),
    )
    assert aws.protocol_of(pool) == ("HTTPS", "")
    assert aws.slow_start(pool) == {"slow_start": 30}
    assert groups._choice(pool)["stickiness"] == [{"type": "lb_cookie", "enabled": True, "cookie_duration": 600}]
    check = groups._health_check(pool)
    assert (check["protocol"], check["matcher"]) == ("HTTPS", "200-299,304")
    tcp = pool_with(protocol=Protocol.TCP, proxy_protocol=ProxyProtocol.V2, persistence=Persistence(PersistBy.SOURCE))
    assert groups._choice(tcp)["proxy_protocol_v2"] is True
    grpc = pool_with(http_version=HttpVersion.HTTP2, health_check=HealthCheck(kind=CheckKind.GRPC))
    assert aws.protocol_of(grpc) == ("HTTP", "GRPC")


def test_backend_services_say_what_they_can() -> None:
    body = services._service(pool_with(server_tls=ServerTls(), outlier_ejection=OutlierEjection()), [])
    assert body["protocol"] == "HTTPS"
    assert body["outlier_detection"] == [{"consecutive_errors": 5, "base_ejection_time": [{"seconds": 10}]}]
    header = services._service(pool_with(persistence=Persistence(PersistBy.HEADER, header="X-User")), [])
    assert (header["session_affinity"], header["locality_lb_policy"]) == ("HEADER_FIELD", "MAGLEV")
    assert services._check(HealthCheck(kind=CheckKind.GRPC, service="shop.Orders"), "HTTP2")["grpc_tls_health_check"]
