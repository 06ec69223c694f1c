"""Writes of alert rules and channels: who may look at what, and whom an account may have told."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from apps.accounts.models import Account, Hostname, User
from apps.core.called_urls import Refused, read_url
from apps.core.outbound import check_target
from apps.core.secrets.sealing import seal, unseal
from apps.definitions.models import AlertChannel, AlertRule
from apps.definitions.shapes.base.writing import copy_plain, write
from apps.definitions.shapes.operations.alert_channel import CHATS, NEEDS, AlertChannelSpec, QuietHours
from apps.definitions.shapes.operations.alert_rule import AlertRuleSpec
from apps.definitions.shapes.operations.alert_watches import BUILT_IN, WATCHES
from apps.definitions.writing.change_set import ChangeSet


def store_alert_rule(changes: ChangeSet, owner: Account, row: AlertRule, spec: AlertRuleSpec) -> None:
    """The rule, when its account may look at that."""
    if WATCHES[spec.watches].operators and not owner.is_operator:
        detail = f"Only rules of the operator account can watch {spec.watches}: it tells of the platform."
        changes.add_error("/spec/watches", "operators", detail)
    if BUILT_IN.get(row.name, spec.watches) != spec.watches:
        detail = f"{row.name} is a built-in rule that watches {BUILT_IN[row.name]}; choose another name."
        changes.add_error("/spec/watches", "built_in", detail)
    changes.field_errors.raise_any()
    copy_plain(spec, row)
    row.account, row.only = owner, list(spec.only)
    row.save()


def store_alert_channel(changes: ChangeSet, owner: Account, row: AlertChannel, spec: AlertChannelSpec) -> None:
    """The channel, when its account may have messages sent there; without a secret in the document the stored stays.

    A secret stays with the type and the place that it was given for: otherwise whoever may edit a channel could have
    it sent to a server of their own.
    """
    moved = row.pk is not None and (row.type != spec.type or row.url != spec.url)
    kept = None if row.pk is None or moved else row.sealed_secret
    needed = "secret" in NEEDS[spec.type] or (moved and row.sealed_secret and "secret?" in NEEDS[spec.type])
    if spec.secret is None and kept is None and needed:
        again = " again, because the type or the URL has changed" if moved else ""
        changes.add_error("/spec/secret", "missing", f"Fill in the secret{again}.")
    _reject_strangers(changes, owner, spec)
    _reject_target(changes, spec)
    changes.field_errors.raise_any()
    copy_plain(spec, row)
    row.account, row.to, row.severities = owner, list(spec.to), list(spec.severities)
    row.quiet = write(QuietHours, spec.quiet) if spec.quiet else None
    row.sealed_secret = seal(spec.secret.encode()) if spec.secret else kept
    row.save()


def brings_secret(row: AlertChannel | None, spec: AlertChannelSpec) -> bool:
    """Whether a document sets another secret than the stored one, which no document shows."""
    if not spec.secret or row is None:
        return bool(spec.secret)
    return row.sealed_secret is None or unseal(row.sealed_secret).decode() != spec.secret


def _reject_target(changes: ChangeSet, spec: AlertChannelSpec) -> None:
    schemes = ("https", "http") if settings.DEVELOPMENT else ("https",)
    secret_url = spec.secret if spec.type in CHATS else None
    for url, pointer in ((spec.url, "/spec/url"), (secret_url, "/spec/secret")):
        try:
            if url:
                check_target(read_url(url, schemes=schemes))
        except Refused as refusal:
            changes.add_error(pointer, "url", str(refusal))


def _reject_strangers(changes: ChangeSet, owner: Account, spec: AlertChannelSpec) -> None:
    """A customer has its own people and domains mailed: nobody else, from whom we would look like spam."""
    if not spec.to:
        return
    if not settings.MAILS:
        changes.add_error("/spec/type", "no_mail", "This installation sends no mail: set SPILLWAY_EMAIL_URL first.")
    if owner.is_operator:
        return
    people = {each.lower() for each in User.objects.filter(memberships__account=owner).values_list("email", flat=True)}
    for index, address in enumerate(spec.to):
        if address.lower() not in people and not _own_domain(owner, address.rpartition("@")[2].lower()):
            detail = "Use an address of a person of the account, or at a domain that the account has verified."
            changes.add_error(f"/spec/to/{index}", "stranger", detail)


def _own_domain(owner: Account, domain: str) -> bool:
    """Whether the account has verified the domain or one above it."""
    labels = domain.split(".")
    names = [".".join(labels[start:]) for start in range(len(labels) - 1)]
    mine: Any = Hostname.objects.filter(account=owner, released_at=None).exclude(verification="")
    return bool(mine.filter(name__in=[*names, *(f"*.{name}" for name in names)]).exists())
