"""The installation's own authorities: made when first needed, rotated with an overlap, retired.

With two of them the newer one signs and both are believed, so that every node can go over to the newer one before the
older one goes: renewing.py of apps/enrolment takes them there.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cryptography import x509
from django.db import transaction

from apps.core.clock import now
from apps.core.concurrency.locks import lock_words
from apps.core.errors import Conflict
from apps.core.secrets.sealing import seal, unseal
from apps.fleet import pki
from apps.fleet.certificates.models import Authority, NodeCertificate
from apps.fleet.models import Node

CLIENT = "control-plane"
LIFE = dt.timedelta(days=pki.ENROLLED_DAYS)
RENEWED_BEFORE = LIFE / 3  # a third of its life is left
END = "-----END CERTIFICATE-----\n"
LOCK = "authorities of nodes"
# Consoles read whom they believe at each round, and before each push; by then all of them know a new authority.
KNOWN_AFTER = dt.timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Client:
    """What consoles show nodes: certificate and key, PEM."""

    certificate: str
    key: str = field(repr=False)


def believed() -> list[Authority]:
    """Every authority that is not retired, the oldest first."""
    return list(Authority.objects.filter(retired_at=None).order_by("pk"))


def signing(rows: Sequence[Authority], instant: dt.datetime) -> Authority:
    """The one of the believed authorities, at least one, that signs: the newest that every console knows."""
    known = [row for row in rows if row.created_at <= instant - KNOWN_AFTER]
    return known[-1] if known else rows[0]


def bundle(rows: Iterable[Authority]) -> str:
    """Their certificates as one text (PEM)."""
    return "".join(row.certificate for row in rows)


def digest_of(text: str) -> str:
    """SHA-256 (hex) of a bundle."""
    return hashlib.sha256(text.encode()).hexdigest()


@transaction.atomic
def ensure(by: str) -> list[Authority]:
    """The believed authorities; the first one is made where there is none."""
    lock_words([LOCK])
    return believed() or [_make(by)]


@transaction.atomic
def rotate(by: str) -> Authority:
    """A new authority that signs from now on; the present one is believed until it is retired. Raises Conflict."""
    lock_words([LOCK])
    if len(believed()) > 1:
        raise Conflict("A rotation is under way; wait until every node has a certificate of the newest authority.")
    return _make(by)


@transaction.atomic
def retire(authority_id: int) -> Authority:
    """Believe an authority no more. Raises Conflict for the one that signs."""
    lock_words([LOCK])
    rows = believed()
    found = next((row for row in rows if row.pk == authority_id), None)
    if found is None:
        raise Conflict("This authority is retired already.")
    if found.pk == rows[-1].pk:
        raise Conflict("This authority signs the nodes' certificates. Rotate first; then retire the one before.")
    found.retired_at = now()
    found.save(update_fields=["retired_at"])
    return found


def client_of(row: Authority) -> Client:
    """What consoles show of this authority; a new one when a third of its life is left. Raises Unsealable."""
    if row.client_ends_at - now() <= RENEWED_BEFORE:
        row = _renew_client(row.pk)
    certificate, end, key = unseal(row.sealed_client).decode().partition(END)
    return Client(certificate + end, key)


@transaction.atomic
def _renew_client(pk: int) -> Authority:
    """Of two consoles one makes it, and the other finds it made."""
    row = Authority.objects.select_for_update().get(pk=pk)
    if row.client_ends_at - now() <= RENEWED_BEFORE:
        row.sealed_client, row.client_ends_at = _client(_pair(row))
        row.save(update_fields=["sealed_client", "client_ends_at"])
    return row


def sign(*, request: str, node: Node) -> tuple[NodeCertificate, str]:
    """A stored certificate for the key of a request (PEM), and the authorities to give with it.

    Raises ValueError for a request that is none, Unsealable.
    """
    rows = ensure("spillway")
    signer, text = signing(rows, now()), bundle(rows)
    found = pki.sign_request(_pair(signer), request.encode(), node.name, now=now())
    row = NodeCertificate.objects.create(
        node=node,
        node_name=node.name,
        authority=signer,
        sha256=pki.fingerprint(found),
        text=pki.pem(found),
        believes=digest_of(text),
        issued_at=now(),
        ends_at=found.not_valid_after_utc,
    )
    return row, text


def _make(by: str) -> Authority:
    instant = now()
    pair = pki.make_authority(instant, f"Spillway nodes {instant:%Y-%m-%d %H:%M:%S}")
    sealed, ends_at = _client(pair)
    return Authority.objects.create(
        certificate=pair.certificate.decode(),
        sealed_key=seal(pair.key),
        sealed_client=sealed,
        client_ends_at=ends_at,
        created_at=instant,
        created_by=by[:150],
    )


def _client(pair: pki.Pair) -> tuple[bytes, dt.datetime]:
    made = pki.issue(pair, CLIENT, client=True, now=now(), days=LIFE.days)
    ends_at = x509.load_pem_x509_certificate(made.certificate).not_valid_after_utc
    return seal(made.certificate + made.key), ends_at


def _pair(row: Authority) -> pki.Pair:
    return pki.Pair(row.certificate.encode(), unseal(row.sealed_key))
