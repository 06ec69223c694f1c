"""Imported manifests on a real HAProxy with stub servers, asked at each border of their rules.

What must come back is written here from the definitions of Kubernetes, the Gateway API and ingress-nginx, and not
taken from an importer: no cluster is at hand.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from apps.accounts.actors import Actor
from apps.compiler.compile import compile_snapshot
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.services import apply_document
from apps.fleet.models import Fleet
from apps.importing.kubernetes.reading import read_kubernetes
from apps.importing.options import ImportOptions
from tests.e2e.rendered_proxy import RenderedProxy, echo_servers, running
from tests.manifests import tls_secret

pytestmark = [pytest.mark.django_db, pytest.mark.processes]
CORPUS = Path(__file__).resolve().parents[1] / "import" / "kubernetes"
NAME = "manifests"
TOPOLOGY: list[dict[str, Any]] = [
    {"kind": "Region", "name": NAME, "spec": {"title": "Manifests"}},
    {"kind": "Fleet", "name": NAME, "spec": {"region": NAME, "local_development": True}},
]
PATIENCE_S = 20
ALICE = {"Authorization": "Basic " + base64.b64encode(b"alice:a long password").decode()}


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, and what must come of it: `to` is the pool that answers, `got` what its server saw."""

    host: str
    path: str = "/"
    to: str = ""
    status: int = 200
    location: str = ""
    seen: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    got: Mapping[str, str | None] = field(default_factory=dict)
    answer: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    port: int = 80


S, M, P, A, W = "shop.example.com", "media.example.com", "pay.example.com", "admin.example.com", "store.example.com"
K, F = "market.example.com", "fair.example.com"
ONE, TWO, ANY = "one.example.com", "two.example.com", "any.example.com"
ASKS: dict[str, list[Ask]] = {
    "01-shop": [
        Ask(S, "/a?b=c", status=308, location=f"https://{S}/a?b=c"),
        Ask(S, "/api", status=308, location=f"https://{S}/api"),
        Ask(S, "/", "shop-web-80", port=443),
        Ask(S, "/api", "shop-api-8000", port=443),
        Ask(S, "/api/", "shop-api-8000", port=443),
        Ask(S, "/api/x", "shop-api-8000", port=443, seen="/api/x"),
        Ask(S, "/apiary", "shop-web-80", port=443),
        Ask(S, "/api/health", "shop-health-80", port=443),
        Ask(S, "/api/health/", "shop-api-8000", port=443),
        Ask("other.example.com", "/", status=404),
    ],
    "02-rewrites": [
        Ask(M, "/api", "media-api-80", seen="/"),
        Ask(M, "/api/", "media-api-80", seen="/"),
        Ask(M, "/api/a/b?c=d", "media-api-80", seen="/a/b?c=d"),
        Ask(M, "/apiary", status=404),
        Ask(M, "/files/x", "media-files-80", seen="/x"),
        Ask(M, "/api/v1/users", "media-users-80", seen="/api/v1/users"),
        Ask(M, "/api/v22/users/5", "media-users-80", seen="/api/v22/users/5"),
        Ask(M, "/api/v/users", "media-api-80", seen="/v/users"),
        Ask(M, "/", status=404),
    ],
    "03-canary": [
        Ask(P, "/", "pay-next-80", headers={"X-Canary": "always"}),
        Ask(P, "/", "pay-stable-80", headers={"X-Canary": "never", "Cookie": "canary=always"}),
        Ask(P, "/", "pay-next-80", headers={"X-Canary": "always", "Cookie": "canary=never"}),
        Ask(P, "/", "pay-next-80", headers={"X-Canary": "other", "Cookie": "canary=always"}),
        Ask(P, "/", "pay-stable-80", headers={"Cookie": "canary=never"}),
    ],
    "04-protected": [
        Ask(A, "/", status=401),
        Ask(A, "/", "admin-admin-80", headers=ALICE),
        Ask(A, "/", "admin-admin-80", headers={**ALICE, "Origin": "https://app.example.com"},
            answer={"access-control-allow-origin": "https://app.example.com"}),
    ],
    "05-redirects": [
        Ask("old.example.com", "/a?b=c", status=301, location="https://new.example.com/a?b=c"),
        Ask("gone.example.com", "/shop/x?y", status=302, location="https://status.example.com/maintenance"),
        Ask("example.org", "/", status=302, location="http://example.org/start"),
        Ask("example.org", "/start", "www-web-80"),
        Ask("web.example.net", "/x", "www-web-80"),
        Ask("www.example.org", "/x?y=z", status=308, location="http://example.org/x?y=z"),
    ],
    "06-hosts": [
        Ask(ONE, "/app", "hosts-one-80"),
        Ask(ONE, "/apple", "hosts-fallback-80"),
        Ask(TWO, "/app/x", "hosts-two-80"),
        Ask(TWO, "/other", status=404),
        Ask("three.example.com", "/other", "hosts-wide-80"),
        Ask("a.three.example.com", "/", "hosts-any-80"),
        Ask("example.com", "/", "hosts-any-80"),
        Ask("THREE.example.com:80", "/", "hosts-wide-80"),
    ],
    "07-closed": [
        Ask("guarded.example.com", "/", status=503),
        Ask("open.example.com", "/x", "closed-web-80", got={"host": "inside.example.com"}),
    ],
    "08-haproxy": [
        Ask("haproxy.example.com", "/app", status=403),
        Ask("haproxy.example.com", "/apple", status=404),
    ],
    "09-http-routes": [
        Ask(W, "/cart", "store-cart-80", seen="/v2",
            got={"x-side": "cart", "x-more": "one", "x-debug": None, "host": "cart.internal.example"},
            headers={"X-Debug": "1", "X-Side": "mine"}, answer={"x-served-by": "cart"}),
        Ask(W, "/cart/a", "store-cart-80", seen="/v2/a"),
        Ask(W, "/cartoon", status=404),
        Ask(W, "/cart", "store-beta-80", method="POST"),
        Ask(W, "/cart/", "store-cart-80", method="POST"),
        Ask(W, "/cart?v=2", "store-beta-80", headers={"X-Beta": "1"}),
        Ask(W, "/cart?v=3", "store-cart-80", headers={"X-Beta": "1"}),
        Ask(W, "/old/a?b=c", status=301, location="http://new.example.com/new/a?b=c"),
        Ask(W, "/split", "store-beta-80-2"),
        Ask(W, "/copied", "store-cart-80", headers={"Origin": "https://app.example.com"},
            answer={"access-control-allow-origin": "https://app.example.com"}),
    ],
    "10-references": [
        Ask("a.b.example.com", "/granted", "data-shared-80"),
        Ask("a.b.example.com", "/refused", status=500),
        Ask("elsewhere.example.org", "/granted", status=404),
        Ask("a.b.example.com", "/other", "infra-wide-80"),
        Ask("any.example.com", "/granted", "infra-wide-80"),
        Ask("example.com", "/", status=404),
        Ask(ONE, "/single", "infra-wide-80"),
        Ask(ONE, "/other", status=404),
    ],
    "11-protocols": [Ask("any.example.com", "/", "infra-database-5432", port=5432)],
    "14-traefik": [
        Ask("traefik.example.com", "/app/x", "other-web-80"),
        Ask("traefik.example.com", "/apple", status=404),
    ],
    "15-ingress-routes": [
        Ask(K, "/x?y=z", status=301, location=f"https://{K}/x?y=z"),
        Ask(F, "/", status=301, location=f"https://{F}/"),
        Ask(K, "/api/a", "market-api-8080", port=443, seen="/a", got={"x-via": "traefik", "x-debug": None},
            headers={"X-Debug": "1"}, answer={"x-robots-tag": "noindex", "x-frame-options": "DENY"}),
        Ask(K, "/api", "market-api-8080", port=443, seen="/"),
        Ask(K, "/admin", status=403, port=443),
        Ask(K, "/account", status=503, port=443),
        Ask(K, "/other", "market-shop-80", port=443),
        Ask(F, "/admin", "market-shop-80", port=443),
        Ask(F, "/", "market-beta-80", port=443, headers={"X-Beta": "yes"}),
        Ask("other.example.com", "/", status=404),
    ],
}  # fmt: skip
# What the others have in them as well, in other words.
RARELY = {"05-redirects", "06-hosts", "07-closed", "08-haproxy", "11-protocols", "14-traefik"}


@dataclass(frozen=True, slots=True)
class Running:
    """HAProxy with the objects of one file: where its ports are, and which server is which pool's."""

    proxy: RenderedProxy
    ports: Mapping[int, int]
    pools: Mapping[int, str]

    def ask(self, ask: Ask) -> tuple[http.client.HTTPResponse, bytes]:
        """One request on a new connection."""
        port = self.ports[ask.port]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        if ask.port == 443:
            connection.connect()
            connection.sock = unverified().wrap_socket(connection.sock, server_hostname=ask.host)
        try:
            connection.request(ask.method, ask.path, headers={"Host": ask.host, **ask.headers})
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def check(self, ask: Ask) -> None:
        """Everything that an expectation says."""
        response, body = self.ask(ask)
        assert response.status == ask.status, (ask, body)
        assert (response.getheader("Location") or "") == ask.location, ask
        echoed: dict[str, Any] = json.loads(body) if response.getheader("X-Echo-Port") else {}
        assert self.pools.get(int(echoed.get("port", 0)), "") == ask.to, ask
        if ask.seen:
            assert echoed["path"] == ask.seen, ask
        for name, value in ask.got.items():
            assert echoed["headers"].get(name) == (None if value is None else [value]), (ask, echoed)
        for name, value in ask.answer.items():
            assert response.getheader(name) == value, ask


def unverified() -> ssl.SSLContext:
    """TLS without a look at who answers."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def imported(text: str) -> list[dict[str, Any]]:
    """The documents of a file; nothing is asked."""
    secrets = f"{tls_secret('shop', 'shop-tls', S)}---\n{tls_secret('market', 'market-tls', '*.example.com')}"
    found = read_kubernetes(f"{text}---\n{secrets}", {}, ImportOptions(fleets=(NAME,), region=NAME))
    assert found.needs == ()
    return list(found.documents)


@contextmanager
def served(actor: Actor, documents: list[dict[str, Any]], directory: Path) -> Iterator[Running]:
    """The documents on HAProxy, with one stub server for each pool."""
    pools = [each for each in documents if each["kind"] == "Pool"]
    with echo_servers(len(pools)) as ports:
        for pool, port in zip(pools, ports, strict=True):
            pool["spec"]["backends"][0]["servers"] = [{"name": "stub", "address": "127.0.0.1", "port": port}]
            pool["spec"].pop("server_tls", None)  # stubs speak no TLS
        with transaction.atomic():
            apply_document(actor=actor, objects=[*TOPOLOGY, *documents])
            snapshot = snapshot_of(Fleet.objects.get(name=NAME))
            transaction.set_rollback(True)
        compilation = compile_snapshot(snapshot)
        assert compilation.left_out == ()
        with running(compilation.output, directory) as proxy:
            at = {bind.port: proxy.ports[bind.listener_id] for bind in compilation.output.binds}
            names = {port: pool["name"] for pool, port in zip(pools, ports, strict=True)}
            yield Running(proxy, at, names)


@pytest.mark.slow(reason="HAProxy is started for each file")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive if name in RARELY else ()) for name in ASKS]
)
def test_each_request_goes_where_the_specification_says(operator: Actor, name: str, tmp_path: Path) -> None:
    with served(operator, imported((CORPUS / f"{name}.yaml").read_text()), tmp_path) as found:
        for ask in ASKS[name]:
            found.check(ask)


@pytest.mark.slow(reason="HAProxy is asked four hundred times")
def test_a_canary_gets_its_share(operator: Actor, tmp_path: Path) -> None:
    with served(operator, imported((CORPUS / "03-canary.yaml").read_text()), tmp_path) as found:
        counted = Counter(found.pools[json.loads(found.ask(Ask(P))[1])["port"]] for _ in range(400))
    assert 0.8 < counted["pay-stable-80"] / 400 < 0.98
    assert counted.total() == 400


@pytest.mark.slow(reason="HAProxy is started")
def test_a_rule_that_is_lost_is_noticed(operator: Actor, tmp_path: Path) -> None:
    """The control: without one of its routes the same file is answered otherwise."""
    documents = imported((CORPUS / "01-shop.yaml").read_text())
    less = [each for each in documents if each["spec"].get("path_kind") != "exact"]
    assert len(less) < len(documents)
    (lost,) = [each for each in ASKS["01-shop"] if each.path == "/api/health"]
    with served(operator, less, tmp_path) as found, pytest.raises(AssertionError):
        found.check(lost)
