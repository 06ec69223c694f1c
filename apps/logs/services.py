"""What an account wants of its request log; and lines that go: too old, too many, of an account that is gone."""

from __future__ import annotations

import logging
import re
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.accounts.quotas import quota
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import FieldError, Invalid
from apps.drivers.logs.contract import LogStore, LogStoreError
from apps.drivers.logs.registry import open_queues
from apps.logs.models import LogForward, LogSettings
from apps.logs.searching import answering
from apps.members.reading import account_named, check_version

NOUN = "request-logs"
RETENTION_DAYS = (1, 400)
MEGABYTE = 10**6
HOUR = timedelta(hours=1)
FIELDS = ("retention_days", "mask_addresses", "mask_values_of")
MOST_NAMES = 50
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")

logger = logging.getLogger(__name__)


@transaction.atomic
def change_settings(
    *, actor: Actor, account: object = None, spec: object, expected_version: int | None = None, reason: str = ""
) -> LogSettings:
    """Set some of `FIELDS`; what is left out stays. Raises Forbidden, Invalid, Stale."""
    actor.may_write(NOUN)
    owner = account_named(actor, account)
    LogSettings.objects.bulk_create([LogSettings(account=owner)], ignore_conflicts=True)
    row = LogSettings.objects.select_for_update(of=("self",)).select_related("account").get(account=owner)
    check_version(row.version, expected_version)
    before = document(row)
    wanted = _read(spec, before)
    if wanted == before:
        return row
    for name, value in wanted.items():
        setattr(row, name, value)
    row.version += 1
    row.save()
    audit.record(
        actor=actor,
        action="update",
        kind="LogSettings",
        object_id=row.pk,
        label=owner.name,
        account=owner,
        version=row.version,
        before=before,
        after=wanted,
        reason=reason,
    )
    return row


def delete_lines(*, actor: Actor, before: datetime, account: object = None, reason: str = "") -> int:
    """Delete the account's lines of whole hours that ended before this; how many went.

    The audit record comes first: should the store fail half way, it is known who asked for it. Raises Forbidden,
    Invalid, NotAnswered.
    """
    owner = account_named(actor, account)
    must_delete(actor, owner)
    if before > now():
        raise Invalid([FieldError("/before", "future", "Choose a time that is past.")])
    audit.record(
        actor=actor,
        action="delete",
        kind="RequestLines",
        object_id=owner.pk,
        label=owner.name,
        account=owner,
        after={"before": before.isoformat()},
        reason=reason,
    )
    with answering("/before") as store:
        gone = store.delete(owner.pk, before)
    # What waits to be forwarded goes as well, here at once and wherever else when it would be sent; an operator's log
    # forwards have lines of every account, which stay.
    queues = open_queues(settings.LOGS_URL)
    rows = LogForward.objects.filter(account=owner, account__kind=Account.Kind.CUSTOMER)
    rows.filter(Q(forget_before=None) | Q(forget_before__lt=before)).update(forget_before=before)
    for row in rows:
        queues.tidy(row.pk, row.positions, now(), before)
    return gone


def must_delete(actor: Actor, owner: Account) -> None:
    """Raise Forbidden unless the actor may delete the account's lines: its admins, and operators those of others."""
    actor.must_manage(owner, "the deletion of request lines", NOUN)


def document(row: LogSettings) -> dict[str, Any]:
    """What people and the audit log read of it."""
    return {name: getattr(row, name) for name in FIELDS}


def sweep(store: LogStore, moment: datetime) -> int:
    """Delete lines that are too old, of accounts that are gone, and the oldest of who has too many; how many went.

    An account whose lines cannot be deleted keeps no other waiting. Raises LogStoreError for the first, in the end.
    """
    kept = {row.account_id: row for row in LogSettings.objects.all()}
    numbers = store.accounts()  # before the database is asked: who has lines by then is known there
    owners = Account.objects.in_bulk(numbers)
    gone, trouble = 0, None
    for number in numbers:
        try:
            owner = owners.get(number)
            if owner is None:
                gone += store.delete(number)
                continue
            days = kept.get(number, LogSettings()).retention_days
            gone += store.delete(number, moment - timedelta(days=days)) + _make_room(store, owner)
        except LogStoreError as error:
            trouble = trouble or error
    if gone:
        logger.info("deleted %s request lines", gone)
    if trouble:
        raise trouble
    return gone


def _make_room(store: LogStore, owner: Account) -> int:
    """Delete the oldest hours of an account that is over its quota."""
    megabytes = quota(owner, "log_megabytes")
    gone = 0
    while megabytes is not None:
        usage = store.usage(owner.pk)
        if usage.oldest is None or usage.bytes <= megabytes * MEGABYTE:
            break
        deleted = store.delete(owner.pk, usage.oldest + HOUR)
        if not deleted:
            break
        gone += deleted
    return gone


def _read(spec: object, present: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(spec, dict):
        detail = f"Send spec as an object: {{{', '.join(FIELDS)}}}."
        raise Invalid([FieldError("/spec", "not_object", detail)])
    known = ", ".join(FIELDS)
    field_errors = [
        FieldError(f"/spec/{name[:63]}", "unknown_field", f"There is no such field; known are {known}.")
        for name in sorted(map(str, set(spec) - set(FIELDS)))
    ]
    wanted = {name: spec.get(name, present[name]) for name in FIELDS}
    least, most = RETENTION_DAYS
    days = wanted["retention_days"]
    if not isinstance(days, int) or isinstance(days, bool) or not least <= days <= most:
        detail = f"Use a whole number of days from {least} to {most}."
        field_errors.append(FieldError("/spec/retention_days", "range", detail))
    if not isinstance(wanted["mask_addresses"], bool):
        field_errors.append(FieldError("/spec/mask_addresses", "not_boolean", "Use true or false."))
    names, wrong = _names(wanted["mask_values_of"])
    if field_errors := field_errors + wrong:
        raise Invalid(field_errors)
    return wanted | {"mask_values_of": names}


def _names(given: object) -> tuple[list[str], list[FieldError]]:
    """The names as they are stored, and what is wrong with them."""
    pointer, example = "/spec/mask_values_of", "such as token or api-key"
    if not isinstance(given, list):
        return [], [FieldError(pointer, "not_list", f"Send a list of names, {example}.")]
    if len(given) > MOST_NAMES:
        return [], [FieldError(pointer, "too_many", f"Use at most {MOST_NAMES} names.")]
    names = [each.lower() if isinstance(each, str) else "" for each in given]
    rule = f"a name is letters, digits, dots, underscores and hyphens, at most 63 of them, {example}."
    wrong = [(index, _printable(given[index])) for index, name in enumerate(names) if not _NAME.fullmatch(name)]
    return sorted(set(names)), [
        FieldError(f"{pointer}/{index}", "not_name", f"Change “{said}”: {rule}") for index, said in wrong
    ]


def _printable(given: object) -> str:
    return "".join(each if each.isprintable() else "?" for each in str(given)[:63])
