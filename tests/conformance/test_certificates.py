"""Whatever certificate is stored, a real HAProxy takes; what it refuses never comes so far."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from apps.compiler.bundle import MANIFEST, assemble
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Certificate, Listener, LoadBalancer, Protocol
from apps.core.clock import now
from apps.definitions.values import certificates
from apps.definitions.values.certificates import canonical_pem, read_certificate
from tests.conformance import certificate_cases as made
from tests.e2e.rendered_proxy import refusal_of
from tests.pure.compiler_fixtures import certificate_pem

Make = Callable[[], made.Pair]
PRIMES = (pytest.mark.slow(reason="looks for large primes"), pytest.mark.exhaustive)

SLOW = ("RSA 3072 alone", "RSA 4096 alone", "RSA 8192 alone", "below RSA 8192")

GOOD: dict[str, Make] = {
    **{f"{kind} alone": partial(made.alone, kind) for kind in ("RSA 2048", "RSA 3072", "RSA 4096")},
    **{f"{kind} alone": partial(made.alone, kind) for kind in ("P-256", "P-384", "P-521", "Ed25519")},
    **{f"below {kind}": partial(made.below, kind) for kind in ("RSA 2048", "RSA 8192", "P-256", "P-521", "Ed25519")},
    "below a root that signed itself with sha1": partial(made.below_an_old_root, "sha1"),
    "carriage returns": partial(made.rewritten, lambda text: text.replace("\n", "\r\n")),
    "byte order mark": partial(made.rewritten, lambda text: "\ufeff" + text),
    "no last line feed": partial(made.rewritten, str.strip),
}
# What HAProxy refuses as well: there the wall is what keeps a node from refusing everybody's changes.
REFUSED_BY_BOTH: dict[str, Make] = {
    "RSA 1024 alone": partial(made.alone, "RSA 1024"),
    "P-192 alone": partial(made.alone, "P-192"),
    "DSA alone": partial(made.alone, "DSA"),
    "below RSA 1024": partial(made.below, "RSA 1024"),
    "below P-192": partial(made.below, "P-192"),
    "signed with sha1": partial(made.signed_weakly, "sha1"),
    "signed with md5": partial(made.signed_weakly, "md5"),
    "the authority first": made.wrong_order,
    "empty": lambda: ("", made.key_of("P-256")),
}
# What HAProxy takes: some clients do not, a signature costs too much, or other nodes may see it otherwise.
REFUSED_BY_US: dict[str, Make] = {
    "RSA 8192 alone": partial(made.alone, "RSA 8192"),
    "P-224 alone": partial(made.alone, "P-224"),
    "Ed448 alone": partial(made.alone, "Ed448"),
    "below an expired authority": made.below_an_expired_authority,
    "a stranger's authority": made.with_a_stranger,
    "100 certificates": partial(made.repeated, 100),
}


def complaints(chain: str, key: str) -> list[tuple[str, str, str]]:
    """What our reader says: field, code, sentence."""
    found: list[tuple[str, str, str]] = []
    facts = read_certificate(canonical_pem(chain), canonical_pem(key), now(), lambda *said: found.append(said))
    assert (facts is None) == bool(found)
    return found


def refusal(pem: str, folder: Path) -> str:
    """What `haproxy -c` says of an https listener with this certificate."""
    certificate = Certificate("crt-1", "acme/shop", "acme", certificate_pem(made.NAME), (made.NAME,))
    listener = Listener("lst-1", "https", Protocol.HTTPS, 8443, certificate_ids=("crt-1",))
    front = LoadBalancer("lb-1", "front", "operator", (listener,))
    bundle = compile_snapshot(Snapshot("here", "here", (front,), certificates=(certificate,))).output
    files = {path: content for path, content in bundle.files.items() if path != MANIFEST}
    return refusal_of(assemble(files | {"certs/crt-1.pem": pem.encode()}, bundle.binds, bundle.line_owners), folder)


def marked(cases: dict[str, Make]) -> list[object]:
    """The names as parameters; to make some takes longer."""
    return [pytest.param(name, marks=PRIMES if name in SLOW else ()) for name in cases]


@pytest.mark.parametrize("name", marked(GOOD))
def test_what_is_stored_is_what_haproxy_takes(name: str, tmp_path: Path) -> None:
    chain, key = GOOD[name]()
    assert complaints(chain, key) == []
    assert refusal(canonical_pem(chain) + canonical_pem(key), tmp_path) == ""


@pytest.mark.parametrize("name", marked(REFUSED_BY_BOTH))
def test_what_haproxy_refuses_is_refused_when_it_is_written(name: str, tmp_path: Path) -> None:
    chain, key = REFUSED_BY_BOTH[name]()
    found = complaints(chain, key)
    assert {field for field, _, _ in found} <= {"/spec/chain", "/spec/key"}
    assert found
    assert "crt-1.pem" in refusal(chain + key, tmp_path)


@pytest.mark.parametrize("name", marked(REFUSED_BY_US))
def test_what_haproxy_takes_and_clients_or_nodes_suffer_from_is_refused_with_what_to_do(
    name: str, tmp_path: Path
) -> None:
    chain, key = REFUSED_BY_US[name]()
    assert {field for field, _, _ in complaints(chain, key)} == {"/spec/chain"}
    assert refusal(chain + key, tmp_path) == ""


def test_what_the_list_does_not_know_openssl_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    chain, key = made.below("RSA 1024")
    monkeypatch.setattr(certificates, "complaints_about", lambda *_: [])
    assert [code for _, code, _ in complaints(chain, key)] == ["openssl"]
    monkeypatch.setattr(certificates, "complaint_of_openssl", lambda *_: None)
    assert complaints(chain, key) == []
