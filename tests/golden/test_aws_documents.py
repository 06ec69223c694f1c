"""Golden documents of stacks at AWS: each setup goes in, `aws/<environment>.json` and what is said of it come out.

`UPDATE_GOLDEN=1 pytest tests/golden` writes what the compiler says now; read the difference before committing it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from apps.compiler.compile import compile_stack
from apps.compiler.model.listener_options import ListenerTls, TlsPreset
from apps.compiler.model.shared import (
    Balance,
    Certificate,
    FixedResponse,
    HealthCheck,
    PathKind,
    Protocol,
    Redirect,
    ValueCondition,
    ValueMatch,
    WeightedPool,
)
from apps.compiler.model.stack import AddressKind, CloudRecord, CloudZone, Network, RecordType, StackSnapshot
from tests.pure.aws_fixtures import AWAY, address, backend, front, pool, server, stack
from tests.pure.compiler_fixtures import listener, route
from tests.schema_facts import errors_in, facts_of

FOLDER = Path(__file__).parent / "aws"
PEM = "".join(
    f"-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n"
    for kind, text in (("CERTIFICATE", "bGVhZg=="), ("PRIVATE KEY", "a2V5"), ("CERTIFICATE", "YWJvdmU="))
)
CANARY = (ValueCondition("X-Canary", ValueMatch.EQUALS, "yes"), ValueCondition("X-Beta", ValueMatch.PRESENT))


def _certificate(number: int) -> Certificate:
    return Certificate(f"crt-{number}", f"certificate-{number}", "acme", PEM, ("a.example",))


def _routes() -> StackSnapshot:
    return stack(
        front(
            route(1, "a.example"),
            route(2, "*.a.example", "/api", methods=("GET", "POST", "PUT", "DELETE")),
            route(3, "a.example", "/old", redirect=Redirect(301, "https", "new.example", "/new")),
            route(4, "a.example", "/there", redirect=Redirect(302, path="/here", keep_query=False)),
            route(5, "a.example", "/teapot", path_kind=PathKind.EXACT, fixed_response=FixedResponse(418, body="${x}")),
            route(6, "a.example", "/gone", fixed_response=FixedResponse(410)),
            route(7, "a.example", "/canary", headers=CANARY),
            route(8, "a.example", "/split", pools=(WeightedPool("pool-1", 20), WeightedPool("pool-2", 80))),
        ),
        pools=(pool(1), pool(2, backend(2, weight=3), backend(3, AWAY, weight=1), health_check=HealthCheck("/up"))),
    )


def _static() -> StackSnapshot:
    listeners = (
        listener(1, port=80, address="ip-4"),
        listener(2, port=443, protocol=Protocol.HTTPS, certificate_ids=("crt-1", "crt-2"), address="ip-5"),
        listener(3, port=5432, protocol=Protocol.TCP, default_pool_id="pool-3", address="ip-4"),
    )
    records = (
        CloudRecord("rec-1", "@", RecordType.A, 300, load_balancer_id="lb-1"),
        CloudRecord("rec-2", "static", RecordType.A, 300, address_id="ip-4"),
        CloudRecord("rec-3", "near", RecordType.A, 300, address_id="ip-5"),
        CloudRecord("rec-4", "text", RecordType.TXT, 60, ('"v=spf1" "-all"',)),
        CloudRecord("rec-5", "mail", RecordType.MX, 60, ("10 mx.example.net.",)),
    )
    return stack(
        front(route(1), listeners=listeners),
        pools=(pool(1), pool(3, protocol=Protocol.TCP, balance=Balance.SOURCE)),
        certificates=(_certificate(1), _certificate(2)),
        addresses=(address(4), address(5, AddressKind.ACCELERATOR), address(6, protected=False)),
        zones=(CloudZone("zone-1", "zone", "ops", "a.example", records),),
        network=Network("vpc-1", ("subnet-b", "subnet-a"), ("192.0.2.0/24", "2001:db8::/32"), "logs"),
    )


def _refused() -> StackSnapshot:
    return stack(
        front(
            route(1, prefix_rewrite="/v2"),
            route(2, "b.example", headers=(ValueCondition("X-Old", ValueMatch.ABSENT),)),
            route(3, "c.example", redirect=Redirect(308, "https")),
            route(4, "d.example", fixed_response=FixedResponse(200, "text/xml", "<a/>")),
            route(5, "shop.xn--p1ai"),
            route(6, "e.example", "/a=b"),
            route(7, "f.example"),
        ),
        pools=(pool(1, backend(1, servers=(server(1, address="192.0.2.1"), server(2)))),),
    )


CASES = {
    "another_endpoint": stack(endpoint_url="http://127.0.0.1:5000"),
    "empty": stack(pools=()),
    "minimal_http": stack(front(route(1))),
    "minimal_tcp": stack(
        front(listeners=(listener(1, port=5432, protocol=Protocol.TCP, default_pool_id="pool-1"),)),
        pools=(pool(1, protocol=Protocol.TCP),),
    ),
    "refused": _refused(),
    "tcp_with_tls": stack(
        front(
            listeners=(
                listener(
                    1,
                    port=8883,
                    protocol=Protocol.TCP,
                    default_pool_id="pool-1",
                    ends_tls=True,
                    certificate_ids=("crt-1", "crt-2"),
                    default_certificate_id="crt-2",
                    tls=ListenerTls(TlsPreset.MODERN, alpn=("mqtt",)),
                ),
            )
        ),
        pools=(pool(1, protocol=Protocol.TCP),),
        certificates=(_certificate(1), _certificate(2)),
    ),
    "routes": _routes(),
    "static_ips_and_dns": _static(),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_stack_becomes_exactly_this_document_with_these_findings(name: str) -> None:
    compilation = compile_stack(CASES[name])
    said = {
        word: [f"{each.object_id} {each.field or '-'} {each.code}: {each.message}" for each in findings]
        for word, findings in (("refused", compilation.left_out), ("warnings", compilation.warnings))
    }
    text = json.dumps({"document": compilation.output.as_json(), **said}, indent=1) + "\n"
    path = FOLDER / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_provider_takes_every_golden_document(name: str) -> None:
    assert errors_in(compile_stack(CASES[name]).output, facts_of("aws")) == []
