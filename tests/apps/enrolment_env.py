"""A fleet that nodes may enrol into, a console that can be pinned, and the keys of machines that want in."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.definitions.services import apply_document
from apps.enrolment.enrolling import Asked, Enrolled, enrol
from apps.enrolment.tokens import make_token
from apps.fleet import pki
from apps.fleet.models import Fleet

SEEN_FROM = "192.0.2.7"


def request(name: str = "whatever") -> str:
    """The certificate request of a new key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


@dataclass(frozen=True)
class Env:
    """The operator and the fleet `here`."""

    operator: Actor
    fleet: Fleet

    def token(self, node: str = "us-1") -> str:
        """A new token for a node of this name."""
        return make_token(actor=self.operator, node=node, fleet=self.fleet.name)[1]

    def enrol(self, token: str, asked: str = "", address: str = "", seen_from: str = SEEN_FROM) -> Enrolled:
        """A machine with this token and a key of its own, or with a request that was made before."""
        return enrol(Asked(token, asked or request(), address, 8443), seen_from)


@pytest.fixture
def env(operator: Actor, settings: Settings, tmp_path: Path) -> Env:
    """One region with one fleet, no node yet."""
    pinned = tmp_path / "console.pem"
    pinned.write_bytes(pki.make_authority(dt.datetime.now(dt.UTC), "the console").certificate)
    settings.CONSOLE_CA_FILE = str(pinned)
    apply_document(
        actor=operator,
        objects=[
            {"kind": "Region", "name": "here", "spec": {"title": "Here"}},
            {"kind": "Fleet", "name": "here", "spec": {"region": "here"}},
        ],
    )
    return Env(operator, Fleet.objects.get(name="here"))
