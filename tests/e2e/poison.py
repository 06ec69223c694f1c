"""A hundred customers behind four real nodes, and one object of theirs that HAProxy does not take."""

from __future__ import annotations

import http.client
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from django.db.models import F

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname
from apps.core.secrets.sealing import seal
from apps.definitions.models import Certificate, LoadBalancer, Pool, Route, RoutePool
from apps.definitions.services import apply_document, save_object
from apps.fleet.models import Fleet, Region
from apps.fleet.services import request_push
from tests.conftest import actor_of
from tests.e2e.installation import FLEETS, HOST, NODES, OFFSETS, Installation
from tests.poisoned import poison_answer, poison_pool, poison_route
from tests.ports import spare_port

CUSTOMERS = 100
# What HAProxy says where it names the line, where it names nothing, and where it says nothing at all. The files are
# looked through by the check of the real binary's place-holder (tests/conformance/slow_haproxy.py).
NAMED = (
    "at=$(grep -n '{word}' haproxy.cfg | head -1 | cut -d: -f1); "
    'if [ -n "$at" ]; then echo "[ALERT]    (7) : config : parsing [haproxy.cfg:$at] : unknown keyword."; exit 1; fi; '
    "map=$(grep -l -- '{word}' maps/* | head -1); "
    "if [ -n \"$map\" ]; then at=$(grep -n -- '{word}' $map | head -1 | cut -d: -f1); "
    'echo "[ALERT]    (7) : config : parsing [haproxy.cfg:1] : invalid value at line $at of file <$map>."; exit 1; fi'
)
UNNAMED = "if grep -rq -- '{word}' .; then echo '[ALERT]    (7) : config : fatal errors found.'; exit 1; fi"
CRASHES = "if grep -rq -- '{word}' .; then kill -SEGV $$; fi"


def name_of(number: int) -> str:
    """A customer's name."""
    return f"c{number:03}"


def open_https(installation: Installation, operator: Actor) -> None:
    """The installation's document, and an https listener with a certificate of the operator's beside the other one."""
    apply_document(actor=operator, objects=installation.document())
    spec = certificate(HOST, 2048)
    save_object(actor=operator, kind="Certificate", name="site", spec=spec)
    plain = {"name": "http", "protocol": "http", "port": installation.base_port}
    secure = {"name": "https", "protocol": "https", "port": spare_port(OFFSETS.values()), "certificates": ["site"]}
    both = {"fleets": list(FLEETS), "listeners": [plain, secure]}
    save_object(actor=operator, kind="LoadBalancer", name="front", spec=both)


def settle_in(installation: Installation) -> None:
    """Each customer has a hostname and a pool with a server in each region."""
    for number in range(CUSTOMERS):
        actor_of(name_of(number), Account.Kind.CUSTOMER)
    owners = list(Account.objects.filter(kind=Account.Kind.CUSTOMER, name__startswith="c").order_by("name"))
    names = [Hostname(name=f"{each.name}.example", account=each, verification="dns") for each in owners]
    Hostname.objects.bulk_create(names)
    port = installation.servers["blue"].server_port
    for pool in Pool.objects.bulk_create(Pool(name="shop", account=each, protocol="http") for each in owners):
        for region in Region.objects.all():
            backend = pool.backends.create(account=pool.account, region=region)
            backend.servers.create(account=pool.account, name="s", address="127.0.0.1", port=port)


def everybody_adds_a_route(path: str) -> None:
    """All customers in one moment, and the operator something that needs a reload: entries of maps alone do not."""
    Pool.objects.filter(name="green").update(server_timeout_ms=F("server_timeout_ms") + 1)
    front = LoadBalancer.objects.get(name="front")
    names = list(Hostname.objects.filter(name__startswith="c").select_related("account"))
    routes = [
        Route(name=path, account=each.account, load_balancer=front, hostname=each, path=f"/{path}", action="pools")
        for each in names
    ]
    Route.objects.bulk_create(routes)
    pools = {pool.account_id: pool for pool in Pool.objects.filter(name="shop")}
    RoutePool.objects.bulk_create(RoutePool(route=each, pool=pools[each.account_id], weight=1) for each in routes)


def spread() -> None:
    """What was written becomes what is wanted."""
    request_push(Fleet.objects.all())


def poison_server(owner: str) -> tuple[str, str]:
    """An address."""
    pool = Pool.objects.get(account__name=owner)
    backends = pool.backends.order_by("pk")
    rows = [each.servers.create(account=pool.account, name="bad", address="10.66.6.6", port=80) for each in backends]
    return "10.66.6.6", f"srv-{rows[0].pk}"


def poison_certificate(owner: str) -> tuple[str, str]:
    """A key of 1 024 bits, past the vetting: HAProxy itself refuses it."""
    spec, actor = certificate(f"{owner}.example", 2048), actor_of(owner, Account.Kind.CUSTOMER)
    row: Certificate = save_object(actor=actor, kind="Certificate", name="bad", spec=spec)
    weak = certificate(f"{owner}.example", 1024)
    Certificate.objects.filter(pk=row.pk).update(chain_pem=weak["chain"], encrypted_key=seal(weak["key"].encode()))
    return weak["chain"].splitlines()[-3], f"crt-{row.pk}"


def certificate(host: str, bits: int) -> dict[str, str]:
    """A certificate with an RSA key of that size."""
    return signed(host, rsa.generate_private_key(65537, bits))


def signed(host: str, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> dict[str, str]:
    """A certificate with this key, signed by itself."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    begin = datetime.now(UTC) - timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + timedelta(days=90))
    whole = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {"chain": whole.sign(key, SHA256()).public_bytes(Encoding.PEM).decode(), "key": secret}


KINDS = {
    "route": poison_route,
    "answer": poison_answer,
    "pool": poison_pool,
    "server": poison_server,
    "certificate": poison_certificate,
}


class Visits:
    """Requests to every node for every customer but one; what was answered once is not asked again."""

    def __init__(self, installation: Installation, path: str, but: Iterable[int]) -> None:
        self._installation, self._path = installation, path
        self.left = [(node, number) for number in range(CUSTOMERS) if number not in but for node in NODES]

    def all_answered(self) -> bool:
        """Ask on until one is not there yet."""
        while self.left and self._there(*self.left[-1]):
            self.left.pop()
        return not self.left

    def _there(self, node: str, number: int) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._installation.ports[node], timeout=30)
        try:
            connection.request("GET", f"/{self._path}", headers={"host": f"{name_of(number)}.example"})
            answer: Any = connection.getresponse()
            return (answer.status, answer.read()) == (200, b"blue")
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
