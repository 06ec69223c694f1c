"""What is wrong now against what was: findings begin, change and end; pure but for the rows it fills in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from apps.accounts.models import Account
from apps.alerts.looking.contract import Look, Seen
from apps.alerts.models import Finding
from apps.alerts.rules import Rule

Identity = tuple[int, str, str, int]  # account, rule, kind and id of the object
# What is right again for so long has ended; until then it may come back and is still the same.
HOLD = timedelta(seconds=10)
_FIELDS = ("owner", "name", "title", "detail", "page", "keys", "severity", "due_at")


@dataclass(slots=True)
class Moved:
    """What has to be written: rows that began, have other words, are gone for now, have ended, were never told."""

    begun: list[Finding] = field(default_factory=list)
    changed: list[Finding] = field(default_factory=list)
    gone: list[Finding] = field(default_factory=list)
    ended: list[Finding] = field(default_factory=list)
    dropped: list[Finding] = field(default_factory=list)


def wanted(
    looks: Mapping[str, Look], rules: Mapping[tuple[int, str], list[Rule]], accounts: Iterable[Account]
) -> dict[Identity, tuple[Rule, Seen]]:
    """Every object that a rule of an account finds wrong: operators' rules see everybody's, a customer's its own."""
    active = {account.pk for account in accounts}
    operators = [account.pk for account in accounts if account.is_operator]
    found: dict[Identity, tuple[Rule, Seen]] = {}
    for watch, look in looks.items():
        for seen in look.seen:
            told = {seen.account_id} if seen.account_id in active else set()
            for account_id in told | (set() if seen.own else set(operators)):
                for rule in rules.get((account_id, watch), ()) if account_id is not None else ():
                    if rule.wants(seen.account, seen.name, seen.value):
                        found[account_id, rule.name, *seen.key] = rule, seen
    return found


def compare(
    now_wrong: Mapping[Identity, tuple[Rule, Seen]],
    stored: Mapping[Identity, Finding],
    looks: Mapping[str, Look],
    rules: Mapping[tuple[int, str], list[Rule]],
    instant: datetime,
) -> Moved:
    """What differs from the stored findings, which are brought up to date.

    1. What is wrong and new begins. 2. What is wrong and known says what it says now. 3. Of what nobody knows nothing
    changes. 4. What is right again ends after a while; one that was no alert yet goes at once.
    """
    moved = Moved()
    for identity, (rule, seen) in now_wrong.items():
        row = stored.get(identity)
        if row is None:
            moved.begun.append(_begun(identity, rule, seen, instant))
        elif _brought_up(row, rule, seen):
            moved.changed.append(row)
    for identity, row in stored.items():
        if identity not in now_wrong and not _unknown(row, looks, rules):
            if row.alert_id is None:
                moved.dropped.append(row)
            elif row.gone_at is None:
                row.gone_at = instant
                moved.gone.append(row)
            elif instant - row.gone_at >= HOLD:
                row.ended_at = instant
                moved.ended.append(row)
    return moved


def identity_of(row: Finding) -> Identity:
    """Where a stored finding stands."""
    return row.account_id, row.rule, row.object_kind, row.object_id


def _unknown(row: Finding, looks: Mapping[str, Look], rules: Mapping[tuple[int, str], list[Rule]]) -> bool:
    """Whether nobody knows how the object is now; a rule that is no more finds nothing."""
    look = looks.get(row.watches)
    if not any(rule.name == row.rule for rule in rules.get((row.account_id, row.watches), ())):
        return False
    return look is not None and (look.blind or (row.object_kind, row.object_id) in look.unknown)


def _begun(identity: Identity, rule: Rule, seen: Seen, instant: datetime) -> Finding:
    since = min(seen.since, instant)
    row = Finding(
        account_id=identity[0],
        rule=rule.name,
        watches=rule.watches,
        object_kind=seen.kind,
        object_id=seen.object_id,
        since=since,
        due_at=since,
    )
    _brought_up(row, rule, seen)
    return row


def _brought_up(row: Finding, rule: Rule, seen: Seen) -> bool:
    """Put on the row what is seen now; whether that differs from before."""
    values = (
        seen.account,
        seen.name[:80],
        seen.titled(row.account_id)[:200],
        seen.detail[:1000],
        seen.page[:200],
        list(seen.causes),
        rule.severity,
        row.since + timedelta(seconds=rule.for_s),
    )
    before = (*(getattr(row, name) for name in _FIELDS), row.gone_at)
    for name, value in zip(_FIELDS, values, strict=True):
        setattr(row, name, value)
    row.gone_at = None
    return before != (*values, None)
