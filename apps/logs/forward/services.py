"""Log forwards of an account: made, changed, tried and taken away."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.accounts.selectors import only
from apps.audit import services as audit
from apps.core import outbound
from apps.core.called_urls import Refused, read_url
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, Invalid
from apps.core.secrets.sealing import seal
from apps.drivers.logs.contract import SAMPLED, Record
from apps.drivers.logs.queues import Waiting
from apps.drivers.logs.registry import open_queues
from apps.logs.filters import FilterError, parse
from apps.logs.forward.sending import Outcome, context_of, is_syslog, schemes, send
from apps.logs.models import LogForward
from apps.members import reading

NOUN = "log-forwards"
FIELDS = ("url", "sends", "filter", "ca", "header_name", "header_value", "enabled")
USUAL: dict[str, Any] = {
    "sends": LogForward.Sends.LINES.value,
    "filter": "",
    "ca": "",
    "header_name": "",
    "header_value": "",
    "enabled": True,
}
MOST_EACH = 5
LONGEST_CA = 64 * 1024
TEST_TIMEOUT_S = 5.0
TEST_AGAIN = timedelta(seconds=5)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,80}")
_VALUE = re.compile(r"[!-~]([ -~]{0,4094}[!-~])?")
# What a request says by itself, and what says how to read it.
_OURS = ("host", "user-agent", "connection", "expect", "upgrade", "te", "trailer", "transfer-encoding")


def forwards(actor: Actor) -> QuerySet[LogForward]:
    """Log forwards that the actor may see, by account and name, without their secrets."""
    rows = LogForward.objects.select_related("account").defer("header_value")
    return actor.visible(rows).order_by("account__name", "name")


def forward(actor: Actor, pk: int) -> LogForward:
    """One log forward. Raises NotFound."""
    return only(forwards(actor), pk)


def waiting(row: LogForward) -> Waiting:
    """What a log forward was not sent yet."""
    return open_queues(settings.LOGS_URL).waiting(row.pk, row.positions)


@transaction.atomic
def make_forward(*, actor: Actor, name: object, spec: object, account: object = None, reason: str = "") -> LogForward:
    """Make a log forward: `spec` is `{url, sends?, filter?, ca?, header_name?, header_value?, enabled?}`.

    Raises Forbidden, Invalid, Conflict.
    """
    actor.may_write(NOUN)
    owner = Account.objects.select_for_update().get(pk=reading.account_named(actor, account).pk)
    field_errors: list[FieldError] = []
    plain, wanted = reading.name(name, field_errors), _read(spec, {"url": None, **USUAL}, field_errors)
    present = LogForward.objects.filter(account=owner)
    if present.count() >= MOST_EACH:
        field_errors.append(FieldError("/name", "too_many", f"An account has at most {MOST_EACH} log forwards."))
    if field_errors:
        raise Invalid(field_errors)
    if present.filter(name=plain).exists():
        raise Conflict(f"A log forward named {plain} already exists.")
    row = LogForward(account=owner, name=plain, created_by=actor.name[:150])
    _set(row, wanted)
    row.save()
    _record(actor, "create", row, after=document(row), reason=reason)
    return row


@transaction.atomic
def change_forward(
    *, actor: Actor, pk: int, spec: object, expected_version: int | None = None, reason: str = ""
) -> LogForward:
    """Set what `spec` names; what is left out stays. A change tries at once again what failed before.

    A new URL does not take the header's value along: whoever changes where lines go does not send the secret there.
    Raises NotFound, Forbidden, Invalid, Stale.
    """
    actor.may_write(NOUN)
    row = _locked(actor, pk, expected_version)
    before, field_errors = document(row), list[FieldError]()
    wanted = _read(spec, {**before, "header_value": None}, field_errors)
    kept = bool(wanted) and wanted["header_name"] != "" and wanted["header_value"] is None and row.header_value
    moves = kept and wanted["url"] != row.url
    if moves and not field_errors:
        detail = "Write the header's value again: it is not sent to another URL by itself."
        field_errors.append(FieldError("/spec/header_value", "needed", detail))
    if field_errors:
        raise Invalid(field_errors)
    if all(wanted[name] == before[name] for name in before) and wanted["header_value"] is None:
        return row
    _set(row, wanted)
    row.version += 1
    row.failures, row.failing_since, row.not_before, row.error = 0, None, None, ""
    row.save(
        update_fields=(
            *("url", "sends", "filter", "ca", "header_name", "header_value", "enabled", "version"),
            *("failures", "failing_since", "not_before", "error"),
        )
    )
    _record(actor, "update", row, before=before, after=document(row), reason=reason)
    return row


@transaction.atomic
def delete_forward(*, actor: Actor, pk: int, expected_version: int | None = None, reason: str = "") -> None:
    """Take a log forward away; what waits is not sent any more. Raises NotFound, Forbidden, Stale."""
    actor.may_write(NOUN)
    row = _locked(actor, pk, expected_version)
    _record(actor, "delete", row, before=document(row), reason=reason)
    row.delete()


def send_test(*, actor: Actor, pk: int) -> Outcome:
    """Send one line that says it is a test, and wait for what comes of it. Raises NotFound, Forbidden, Conflict."""
    actor.may_write(NOUN)
    row, moment = forward(actor, pk), now()
    rested = Q(tested_at=None) | Q(tested_at__lte=moment - TEST_AGAIN)
    if not LogForward.objects.filter(rested, pk=row.pk).update(tested_at=moment):
        raise Conflict(f"{row.name} was tested a moment ago; wait {TEST_AGAIN.seconds} seconds.")
    test = Record(
        time=moment,
        id=f"{int(moment.timestamp() * 1000):012x}7000800000000000test",
        node="spillway",
        fleet="",
        account=row.account_id,
        load_balancer="",
        listener="",
        method="GET",
        host="spillway.invalid",
        path="/this-is-a-test",
        status=200,
        test_run="test of a log forward",
        trace_id=secrets.token_hex(16),
        span_id=secrets.token_hex(8),
        sampled=SAMPLED,
    )
    outcome = send(row, [test], {row.account_id: row.account.name}, TEST_TIMEOUT_S)
    if outcome.sent:
        LogForward.objects.filter(pk=row.pk).update(not_before=None)
    return outcome


def document(row: LogForward) -> dict[str, Any]:
    """What people and the audit log read of a log forward; never the header's value."""
    return {
        "url": row.url,
        "sends": row.sends,
        "filter": row.filter,
        "ca": row.ca,
        "header_name": row.header_name,
        "enabled": row.enabled,
    }


def _locked(actor: Actor, pk: int, expected_version: int | None) -> LogForward:
    row = only(forwards(actor).defer(None).select_for_update(of=("self",)), pk)
    reading.check_version(row.version, expected_version)
    return row


def _set(row: LogForward, wanted: dict[str, Any]) -> None:
    for name in ("url", "sends", "filter", "ca", "header_name", "enabled"):
        setattr(row, name, wanted[name])
    if not row.header_name:
        row.header_value = None
    elif wanted["header_value"]:
        row.header_value = seal(wanted["header_value"].encode())


def _read(spec: object, present: dict[str, Any], field_errors: list[FieldError]) -> dict[str, Any]:
    """The fields of a specification over those that are there; a header's value that is None stays as it is."""
    if not isinstance(spec, dict):
        field_errors.append(FieldError("/spec", "not_object", f"Send spec as an object: {{{', '.join(FIELDS)}}}."))
        return {}
    reading.only_known(spec, FIELDS, "/spec", field_errors)
    wanted: dict[str, Any] = {field: spec.get(field, present.get(field)) for field in FIELDS}
    for field, most in (("filter", 2000), ("ca", LONGEST_CA)):
        wanted[field] = _text(wanted[field], field, most, field_errors)
    _check_url(wanted, field_errors)
    _check_sends(wanted, field_errors)
    _check_filter(wanted["filter"], field_errors)
    _check_ca(wanted["ca"], field_errors)
    _check_header(wanted, present, field_errors)
    if not isinstance(wanted["enabled"], bool):
        field_errors.append(FieldError("/spec/enabled", "not_boolean", "Use true or false."))
    return wanted


def _text(value: object, field: str, most: int, field_errors: list[FieldError]) -> str:
    if isinstance(value, str) and len(value) <= most and "\0" not in value:
        return value.replace("\r\n", "\n").strip()
    field_errors.append(FieldError(f"/spec/{field}", "not_text", f"Write text of at most {most} characters."))
    return ""


def _check_url(wanted: dict[str, Any], field_errors: list[FieldError]) -> None:
    text = wanted["url"] if isinstance(wanted["url"], str) else ""
    try:
        called = read_url(text, schemes=schemes())
        outbound.check_target(called)
        if is_syslog(text) and called.path != "/":
            raise Refused("A syslog URL has a host and a port and no path: syslog+tls://logs.example.com:6514.")
    except Refused as refusal:
        field_errors.append(FieldError("/spec/url", "url", str(refusal)))


def _check_sends(wanted: dict[str, Any], field_errors: list[FieldError]) -> None:
    if wanted["sends"] not in LogForward.Sends.values:
        field_errors.append(FieldError("/spec/sends", "choice", f"Choose one of {', '.join(LogForward.Sends.values)}."))
    elif wanted["sends"] == LogForward.Sends.SPANS and isinstance(wanted["url"], str) and is_syslog(wanted["url"]):
        detail = "Syslog has no spans: send lines, or write the URL of an OTLP receiver (https://…/v1/traces)."
        field_errors.append(FieldError("/spec/sends", "no_spans", detail))


def _check_filter(text: str, field_errors: list[FieldError]) -> None:
    try:
        parse(text)
    except FilterError as error:
        field_errors.append(FieldError("/spec/filter", "filter", error.message))


def _check_ca(text: str, field_errors: list[FieldError]) -> None:
    try:
        if "PRIVATE KEY" in text:
            raise ValueError
        context_of(text)
    except ValueError:
        detail = "Paste certificates in PEM form, beginning with -----BEGIN CERTIFICATE-----, and no key."
        field_errors.append(FieldError("/spec/ca", "certificates", detail))


def _check_header(wanted: dict[str, Any], present: dict[str, Any], field_errors: list[FieldError]) -> None:
    name, value = wanted["header_name"], wanted["header_value"]
    url = wanted["url"] if isinstance(wanted["url"], str) else ""
    if name == "" and not value:
        return
    if not isinstance(name, str) or not _HEADER.fullmatch(name):
        field_errors.append(FieldError("/spec/header_name", "header", "Write the name of a header, as Authorization."))
    elif name.lower() in _OURS or name.lower().startswith("content-"):
        field_errors.append(FieldError("/spec/header_name", "reserved", f"Spillway sets {name} itself."))
    elif is_syslog(url):
        field_errors.append(FieldError("/spec/header_name", "no_http", "Syslog has no headers: leave this out."))
    if value is None and present.get("header_name"):
        return
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        detail = "Write the header's value: up to 4 096 printable ASCII characters."
        field_errors.append(FieldError("/spec/header_value", "header", detail))


def _record(actor: Actor, action: str, row: LogForward, **fields: Any) -> None:
    audit.record(
        actor=actor,
        action=action,
        kind="LogForward",
        object_id=row.pk,
        label=f"{row.account.name}/{row.name}",
        account=row.account,
        version=None if action == "delete" else row.version,
        **fields,
    )
