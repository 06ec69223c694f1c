"""Keys of tokens rotate at the issuer while clients ask: fetched, compiled, and loaded by a real HAProxy."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.authentication import Jwt
from apps.compiler.model.policy import Rules
from apps.compiler.plan import Reload, plan
from apps.compiler.policies import rule_set, rules_of
from apps.core import outbound
from apps.core.clock import now
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.key_sets import fetching
from apps.definitions.models import KeySet
from apps.definitions.services import save_object
from apps.fleet.models import Fleet
from tests.e2e.rendered_proxy import RenderedProxy, echo_servers, running, write_bundle
from tests.issuer import AUDIENCE, ISSUER, Issuer, confused, issuing, token, trusting
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

CLIENTS = 4
SETTLED_S = 0.3  # between a reload and the first token of a new key; issuers wait for minutes


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    """An issuer whose certificate is trusted."""
    monkeypatch.setattr(outbound, "_trusted", trusting)
    with issuing() as running_issuer:
        yield running_issuer


def frozen() -> Jwt:
    """The block that nodes get now, after the key set was fetched."""
    KeySet.objects.update(next_at=now())
    fetching.fetch_in_turns()
    found, _ = freeze(Fleet.objects.get(name="us-central1").pk)
    served = found.load_balancers[0]
    block = rules_of(served, next(each for each in served.routes if each.label == "acme/shop")).jwt
    assert block is not None
    return block


def bundle_of(port: int, block: Jwt) -> Bundle:
    """One route that asks for a token, to a server of the test."""
    made = rule_set(Rules(jwt=block))
    served = replace(front(route(1, hostname="api.example", rule_set=made.id)), rule_sets=(made,))
    pools = (pool(1, servers=(server(1, address="127.0.0.1", port=port),)),)
    compilation = compile_snapshot(snapshot(served, pools=pools, local_development=True))
    assert compilation.left_out == ()
    return compilation.output


@dataclass
class Load:
    """Clients on kept connections that ask all the time, in turn with each of the tokens that are current."""

    port: int
    tokens: tuple[str, ...]
    failed: list[object] = field(default_factory=list)
    asked: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Load:
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        number = 0
        while not self._ended.is_set():
            number += 1
            status = self._status(connection, self.tokens[number % len(self.tokens)])
            self.asked += 1
            if status != 200:
                self.failed.append(status)

    def _status(self, connection: http.client.HTTPConnection, bearer: str) -> object:
        """As every client does: again on a new connection where a kept one was closed without an answer."""
        for last in (False, True):
            try:
                connection.request("GET", "/a", headers={"Host": "api.example", "Authorization": f"Bearer {bearer}"})
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if last or not isinstance(error, http.client.RemoteDisconnected | ConnectionError):
                    return error
            else:
                return answer.status
        return None


def follow(actor: Actor, url: str, **fields: Any) -> None:
    """A policy of the whole account that follows the key set."""
    rules = {"jwt": {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": url, **fields}}
    spec = {"rules": rules, "default_for": {"account": True}}
    save_object(actor=actor, kind="Policy", name="who", spec=spec)


def rotate(proxy: RenderedProxy, load: Load, issuer: Issuer, port: int, rotations: int) -> list[float]:
    """Publish the next key beside the last, sign with it, take the last away; how long each reload took, seconds.

    Tokens of the last key are in use until the next rotation: they were issued before.
    """
    took = []

    def bring() -> None:
        began = time.perf_counter()
        _rewrite(proxy, bundle_of(port, frozen()))
        proxy.reload()
        took.append(time.perf_counter() - began)
        time.sleep(SETTLED_S)

    for number in range(rotations):
        old, new = f"k{number}", f"k{number + 1}"
        issuer.publish(old, new)
        bring()
        load.tokens = (token(old), token(new))
        issuer.publish(new)
        bring()
        load.tokens = (token(old), token(new), token(new))
    return took


def status(proxy: RenderedProxy, bearer: str) -> int:
    """What somebody with this token gets."""
    return proxy.ask("lst-1", "api.example", "/a", headers={"Authorization": f"Bearer {bearer}"}).status


def _rewrite(proxy: RenderedProxy, bundle: Bundle) -> None:
    """Other files on the same ports."""
    node = (proxy.directory / "node.cfg").read_text()
    write_bundle(bundle, proxy.directory)
    (proxy.directory / "node.cfg").write_text(node)


@pytest.mark.parametrize("rotations", [pytest.param(2), pytest.param(30, marks=pytest.mark.exhaustive)])
@pytest.mark.slow(reason="HAProxy is reloaded twice for each rotation, under load")
def test_keys_rotate_under_load_and_no_request_fails(
    tutorial_env: Actor, acme: Actor, issuer: Issuer, tmp_path: Path, rotations: int
) -> None:
    issuer.publish("k0")
    follow(acme, issuer.url)
    with echo_servers(1) as ports, running(bundle_of(ports[0], frozen()), tmp_path) as proxy:
        with Load(proxy.ports["lst-1"], (token("k0"),)) as load:
            took = rotate(proxy, load, issuer, ports[0], rotations)
        print(f"{rotations} rotations, {load.asked} requests, fetch to new worker {sorted(took)[len(took) // 2]:.2f} s")
        assert load.failed == []
        assert load.asked > 20
        newest = f"k{rotations}"
        forged = (confused(newest), token("foreign"), token(newest, iss="https://other.example"), token(newest, exp=1))
        assert [status(proxy, each) for each in (token(newest), *forged)] == [200, 401, 401, 401, 401]


@pytest.mark.slow(reason="HAProxy is reloaded twice, under load")
def test_without_grace_tokens_of_the_old_key_fail(
    tutorial_env: Actor, acme: Actor, issuer: Issuer, tmp_path: Path
) -> None:
    issuer.publish("k0")
    follow(acme, issuer.url, jwks_grace_s=0)
    with echo_servers(1) as ports, running(bundle_of(ports[0], frozen()), tmp_path) as proxy:
        with Load(proxy.ports["lst-1"], (token("k0"),)) as load:
            rotate(proxy, load, issuer, ports[0], 1)
        assert set(load.failed) == {401}
        assert len(load.failed) < load.asked, "those of the new key passed"


def test_a_change_of_keys_is_a_reload(tutorial_env: Actor, acme: Actor, issuer: Issuer) -> None:
    issuer.publish("k0")
    follow(acme, issuer.url)
    before = bundle_of(9, frozen())
    issuer.publish("k0", "k1")
    after = bundle_of(9, frozen())
    assert isinstance(plan(before, after), Reload)
    assert len([path for path in after.files if path.startswith("certs/jwt-")]) == 2
