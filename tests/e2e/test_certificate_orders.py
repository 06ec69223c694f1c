"""Automatic certificates with everything real: a certificate authority (Pebble), workers, and nodes that answer it.

Exhaustive, because Pebble is built with Go. `--names 500` asks for more certificates at once. What a node answers is in
tests/golden/acme_challenges as well.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from apps.core.clock import now
from apps.core.concurrency import leases
from apps.definitions.issuing.orders import in_words
from apps.definitions.models import Certificate, CertificateOrder
from apps.definitions.services import apply_document, delete_object, save_object
from apps.fleet.models import Fleet
from apps.issuing import services
from apps.rollouts import selectors
from apps.rollouts.models import Rollout
from tests.conftest import actor_of
from tests.database_url import database_url
from tests.e2e.installation import OFFSETS, Installation, broker, built, wait_until
from tests.e2e.pebble import NameServer, Pebble, name_server, pebble
from tests.ports import spare_port

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

NODES = ("us-1", "us-2")
NAMES = ("redis", *NODES, "worker", "schedule")
FIRST = "first.shop.example"
State = CertificateOrder.State
# An address that answers nobody: every twentieth name has it until the others are issued.
NOBODY = "127.0.0.9"
BETWEEN_DEATHS_S = 10.0
MORTAL = ("worker", "us-1", "schedule", "us-2")
OF_ONE_NAME_S = 6.0


@dataclass(frozen=True)
class Env:
    """Everything that runs."""

    installation: Installation
    authority: Pebble
    https_port: int
    names: NameServer


@pytest.fixture(scope="module")
def db(lasting_db: None) -> None:
    """One database for all tests of this module."""


@pytest.fixture(scope="module")
def env(db: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Env]:
    """A fleet of two nodes, of which the authority asks the second, and an authority that refuses many nonces."""
    folder = tmp_path_factory.mktemp("pebble")
    with built(database_url(), *NAMES, reload_gap=0.2) as installation, broker(installation.redis_url):
        port, https = installation.ports["us-2"], spare_port(OFFSETS.values())
        refusing = {"PEBBLE_WFE_NONCEREJECT": "20"}
        with (
            name_server(folder) as names,
            pebble(folder, http_port=port, names=names.address, environment=refusing) as found,
        ):
            apply_document(actor=operator(), objects=document(installation, https))
            save_authority(found)
            try:
                wait_until(live, "all nodes run it")
                yield Env(installation, found, https, names)
            finally:
                print(*(f"{each} {each.state} {each.message}" for each in Rollout.objects.all()), sep="\n")
                print(installation.logs(), found.log.read_text()[-4000:])


def operator() -> Any:
    """Who changes things."""
    return actor_of("operator", "operator")


def document(installation: Installation, https: int) -> list[dict[str, Any]]:
    """One region with two nodes; every host gets a redirect to https, which must not reach challenges."""
    found: list[dict[str, Any]] = [
        {"kind": "Region", "name": "us", "spec": {"title": "us"}},
        {
            "kind": "Fleet",
            "name": "us",
            "spec": {"region": "us", "local_development": True, **installation.overflow_ports},
        },
    ]
    for node in NODES:
        spec = {"fleet": "us", "url": installation.target(node).url, "port_offset": OFFSETS[node]}
        found.append({"kind": "Node", "name": node, "spec": spec})
    found.append({"kind": "Certificate", "name": "first", "spec": {"automatic": {"hostnames": [FIRST]}}})
    listeners: list[dict[str, Any]] = [
        {"name": "http", "protocol": "http", "port": installation.base_port},
        {"name": "https", "protocol": "https", "port": https, "certificates": ["first"]},
    ]
    found.append({"kind": "LoadBalancer", "name": "front", "spec": {"fleets": ["us"], "listeners": listeners}})
    spec = {"load_balancer": "front", "hostname": "*.shop.example", "path": "/", "scheme": "http"}
    redirect = {"action": {"redirect": {"code": 301, "scheme": "https"}}}
    found.append({"kind": "Route", "name": "any", "spec": spec | redirect})
    return found


def save_authority(found: Pebble, **more: Any) -> None:
    """The authority as documents name it."""
    spec = {"directory_url": found.directory, "trusted_ca": found.trusted_ca, "terms_agreed": True} | more
    save_object(actor=operator(), kind="CertificateAuthority", name="pebble", spec=spec)


def live() -> bool:
    """What was desired last runs on every node."""
    rows = Fleet.objects.values_list("pk", "desired_generation")
    return all(selectors.is_live(pk, desired) for pk, desired in rows)


def order(name: str) -> None:
    """Want a certificate of the host with that name."""
    spec = {"automatic": {"hostnames": [f"{name}.shop.example"]}}
    save_object(actor=operator(), kind="Certificate", name=name, spec=spec)


def row(name: str) -> CertificateOrder:
    """How far it is."""
    return CertificateOrder.objects.select_related("certificate", "authority").get(certificate__name=name)


def words(name: str) -> tuple[str, str]:
    """How it stands, as pages and the API say it."""
    return in_words(Certificate.objects.select_related("order").get(name=name), now())


def fingerprint(name: str) -> str:
    """Of the certificate that it has; empty without one."""
    return Certificate.objects.get(name=name).fingerprint


def shown(env: Env, node: str) -> str:
    """The fingerprint of what a node shows for the first host; empty when the handshake fails."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection(("127.0.0.1", env.https_port + OFFSETS[node]), timeout=10) as raw,
            context.wrap_socket(raw, server_hostname=FIRST) as secured,
        ):
            return hashlib.sha256(secured.getpeercert(binary_form=True) or b"").hexdigest()
    except OSError:
        return ""


def test_a_certificate_is_ordered_proved_and_shown_although_its_host_redirects_everything(env: Env) -> None:
    wait_until(lambda: bool(fingerprint("first")), "it is issued")
    found = Certificate.objects.get(name="first")
    assert found.hostnames == [FIRST]
    state, said = words("first")
    assert (state, said.partition(" issued")[0]) == ("issued", "pebble")
    for node in NODES:
        wait_until(lambda node=node: shown(env, node) == found.fingerprint, f"{node} shows it")  # type: ignore[misc]


def test_a_renewal_fails_no_handshake_and_needs_no_reload(env: Env) -> None:
    wait_until(lambda: bool(fingerprint("first")) and shown(env, "us-1") == fingerprint("first"), "it is shown")
    wait_until(live, "all is out")
    before, reloads = fingerprint("first"), [env.installation.state(node).reloads for node in NODES]
    CertificateOrder.objects.filter(certificate__name="first").update(renew_at=now(), next_at=now())
    seen: list[str] = []
    wait_until(lambda: seen.append(shown(env, "us-1")) or seen[-1] != before, "another one is shown")  # type: ignore[func-returns-value]
    assert set(seen) == {before, fingerprint("first")}
    wait_until(live, "all is out")
    assert [env.installation.state(node).reloads for node in NODES] == reloads


def test_an_order_waits_for_every_node_and_outlives_its_worker(env: Env) -> None:
    wait_until(live, "all is out")
    env.installation.kill("us-1")  # whom the authority does not ask
    try:
        order("killed")
        wait_until(lambda: row("killed").state == State.ANSWERING, "the order is made")
        url = row("killed").order_url
        time.sleep(3)
        assert row("killed").state == State.ANSWERING  # the second node has the answers, the first has not
        env.installation.kill("worker")
        CertificateOrder.objects.filter(certificate__name="killed").update(claimed_until=now())  # its lease is over
    finally:
        env.installation.start("us-1")
        env.installation.start("worker")
    seen = set[str]()
    wait_until(lambda: seen.add(row("killed").order_url) or bool(fingerprint("killed")), "another worker went on")  # type: ignore[func-returns-value]
    assert seen <= {url, ""}  # no other order was made
    assert row("killed").challenges == []


def test_a_host_that_nobody_serves_is_told_and_no_authority_is_asked(env: Env) -> None:
    spec = {"automatic": {"hostnames": ["fails.elsewhere.example"]}}
    save_object(actor=operator(), kind="Certificate", name="nowhere", spec=spec)
    wait_until(lambda: bool(row("nowhere").error), "why is said")
    assert "fails.elsewhere.example is served by no http listener" in row("nowhere").error
    assert row("nowhere").failures == 0
    delete_object(actor=operator(), kind="Certificate", name="nowhere")


def test_a_wrong_answer_is_refused_told_in_words_and_tried_again_later(env: Env) -> None:
    """The control of the tests above: it is our answers that the authority wants."""
    wait_until(live, "all is out")
    env.installation.kill("worker")
    try:
        order("refused")
        lease = leases.take(CertificateOrder, services.LEASE, pk=row("refused").pk)
        assert lease is not None
        services._step(lease)
        assert row("refused").state == State.ANSWERING
        broken = [each | {"answer": "x" * 40} for each in row("refused").challenges]
        CertificateOrder.objects.filter(pk=lease.pk).update(challenges=broken)
        lease.release()
    finally:
        env.installation.start("worker")
    wait_until(lambda: row("refused").failures == 1, "it failed")
    assert "refused.shop.example was not proved. The authority says" in row("refused").error
    state, said = words("refused")
    assert state == "failing"
    assert "The next try is in" in said
    delete_object(actor=operator(), kind="Certificate", name="refused")


@dataclass
class Clients:
    """Who shakes hands with both nodes all the time, and what they were shown."""

    shown: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def at_work(self, env: Env) -> Iterator[None]:
        """As long as the block runs."""
        ended = threading.Event()

        def ask(node: str) -> None:
            while not ended.wait(0.05):
                self.shown[shown(env, node)] += 1

        threads = [threading.Thread(target=ask, args=(node,)) for node in NODES]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            ended.set()
            for each in threads:
                each.join()


def issued(names: list[str]) -> int:
    """How many of them have a certificate."""
    return Certificate.objects.filter(name__in=names).exclude(fingerprint="").count()


def orders_issued(env: Env) -> list[str]:
    """The orders of which the authority made a certificate, as often as it did."""
    return re.findall(r"Issued certificate serial \w+ for order (\S+)", env.authority.log.read_text())


def issued_until_all_are(env: Env, names: list[str]) -> Iterator[None]:
    """One death after the other, until all of the names have their certificate."""
    ends = time.monotonic() + OF_ONE_NAME_S * len(names) + 300
    for mortal in itertools.cycle(MORTAL):
        if issued(names) == len(names):
            return
        assert time.monotonic() < ends, f"{issued(names)} of {len(names)} are issued"
        env.installation.kill(mortal)
        time.sleep(0.5)
        env.installation.start(mortal)
        yield
        time.sleep(BETWEEN_DEATHS_S)


def test_all_are_issued_once_though_some_fail_at_first_and_processes_die(env: Env, pytestconfig: pytest.Config) -> None:
    wait_until(lambda: bool(fingerprint("first")) and shown(env, "us-1") == fingerprint("first"), "it is shown")
    names = [f"n{at}" for at in range(pytestconfig.getoption("--names"))]
    wrong = names[::20]
    clients, deaths, before, began = Clients(), 0, orders_issued(env), time.monotonic()
    for name in wrong:
        env.names.answer(f"{name}.shop.example", NOBODY)
    wanted = ({"automatic": {"hostnames": [f"{name}.shop.example"]}} for name in names)
    documents = [{"kind": "Certificate", "name": name, "spec": spec} for name, spec in zip(names, wanted, strict=True)]
    with clients.at_work(env):
        apply_document(actor=operator(), objects=documents)
        for _ in issued_until_all_are(env, sorted(set(names) - set(wrong))):
            deaths += 1
            CertificateOrder.objects.filter(certificate__name="first").update(renew_at=now(), next_at=now())
        failed = CertificateOrder.objects.filter(certificate__name__in=wrong)
        wait_until(
            lambda: all(each.failures and "was not proved" in each.error for each in failed.all()), "some failed"
        )
        assert issued(wrong) == 0
        for name in wrong:
            env.names.answer(f"{name}.shop.example")
        failed.update(next_at=now())
        for _ in issued_until_all_are(env, wrong):
            deaths += 1
    wait_until(lambda: row("first").state == State.WAITING, "its last renewal is over")
    of_first = sorted(clients.shown)
    print(
        f"{len(names)} names in {time.monotonic() - began:.0f} s, {deaths} deaths; {clients.shown.total()} handshakes "
        f"saw {len(of_first)} certificates of {FIRST}"
    )
    assert "" not in of_first, f"{clients.shown['']} handshakes failed"
    assert len(of_first) > 1
    orders = orders_issued(env)[len(before) :]
    assert len(orders) == len(set(orders))
    assert len(orders) - len(names) == len(set(of_first) | {fingerprint("first")}) - 1
