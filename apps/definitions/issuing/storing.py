"""Writes of certificates, brought or automatic, and of the authorities that issue the automatic ones."""

from __future__ import annotations

from apps.accounts.models import Account
from apps.core.called_urls import Refused, read_url
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.core.outbound import check_target
from apps.core.queue import enqueue_on_commit
from apps.core.secrets.sealing import seal, unseal
from apps.definitions.issuing.orders import ISSUE_TASK
from apps.definitions.models import Certificate, CertificateAuthority, CertificateOrder, Zone
from apps.definitions.shapes.base.writing import copy_objects, copy_plain
from apps.definitions.shapes.platform.certificate_authority import CertificateAuthoritySpec
from apps.definitions.shapes.traffic.certificate import CertificateSpec
from apps.definitions.values.certificates import CertificateFacts, read_certificate
from apps.definitions.writing.change_set import ChangeSet
from apps.fleet.models import Fleet


def store_certificate(changes: ChangeSet, owner: Account, row: Certificate, spec: CertificateSpec) -> None:
    """The chain, and its key sealed; without a key in the document the stored one must fit the new chain.

    An automatic certificate keeps the chain that it has until another one is issued.
    """
    row.account = owner
    copy_objects(spec, row, "automatic")
    if spec.chain is not None:
        key = spec.key
        if key is None and row.encrypted_key:
            key = unseal(row.encrypted_key).decode()
        facts = read_certificate(spec.chain, key, now(), changes.add_error)
        if facts is None or key is None:
            raise Invalid(changes.field_errors.drain())
        put_chain(row, spec.chain, key, facts)
    row.save()
    if spec.automatic is None:
        end_order(changes, row)
    else:
        CertificateOrder.objects.update_or_create(certificate=row, defaults={"next_at": now()})
        enqueue_on_commit(ISSUE_TASK)
    changes.lookups.remember(row, "Certificate", owner.name, row.name)
    changes.mark_affected(row)


def end_order(changes: ChangeSet, row: Certificate) -> None:
    """Order no more; fleets and zones that answer for an order that is under way have nothing to answer then."""
    # A worker that asks them at this moment is waited for, or finds the order gone.
    order = CertificateOrder.objects.select_for_update(of=("self",)).filter(certificate=row).first()
    if order is not None:
        changes.affected.add_fleets(Fleet.objects.filter(pk__in=order.pushes.get("fleets", {})))
        changes.affected.add_zones(Zone.objects.filter(pk__in=order.pushes.get("zones", {})))
        order.delete()


def put_chain(row: Certificate, chain: str, key: str, facts: CertificateFacts) -> None:
    """Put a chain that nodes take on the row, and its key sealed; the caller saves."""
    row.chain_pem, row.encrypted_key = chain, seal(key.encode())
    row.hostnames, row.fingerprint = list(facts.hostnames), facts.fingerprint
    row.not_before, row.not_after = facts.not_before, facts.not_after


def store_authority(
    changes: ChangeSet, owner: Account, row: CertificateAuthority, spec: CertificateAuthoritySpec
) -> None:
    """Who issues; an account that was made at another directory is none there."""
    try:
        check_target(read_url(spec.directory_url))
    except Refused as refusal:
        changes.add_error("/spec/directory_url", "url", str(refusal))
    if spec.external_key_id and not spec.external_hmac_key and not row.sealed_hmac_key:
        changes.add_error("/spec/external_hmac_key", "missing", "Paste the HMAC key that belongs to the key ID.")
    changes.field_errors.raise_any()
    if row.directory_url != spec.directory_url or row.external_key_id != spec.external_key_id:
        row.account_url, row.sealed_account_key = "", None
    is_first = not CertificateAuthority.objects.exists()
    copy_plain(spec, row)
    row.account, row.contacts = owner, list(spec.contacts)
    if spec.external_hmac_key:
        row.sealed_hmac_key = seal(spec.external_hmac_key.encode())
    row.paused_until = None
    row.save()
    changes.lookups.remember(row, "CertificateAuthority", row.name)
    if is_first:  # from now on nodes answer challenges
        changes.affected.add_all_fleets()
    waiting = CertificateOrder.objects.filter(state=CertificateOrder.State.WAITING, issued_at=None)
    if waiting.update(next_at=now()):
        enqueue_on_commit(ISSUE_TASK)


def brings_hmac_key(row: CertificateAuthority | None, spec: CertificateAuthoritySpec) -> bool:
    """Whether a document sets another key than the stored one, which no document shows."""
    if not spec.external_hmac_key or row is None:
        return bool(spec.external_hmac_key)
    return row.sealed_hmac_key is None or unseal(row.sealed_hmac_key).decode() != spec.external_hmac_key
