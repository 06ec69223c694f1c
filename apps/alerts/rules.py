"""The rules that hold for an account: the built-in ones, and its own, of which each takes the place of its namesake."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apps.accounts.models import Account
from apps.definitions.models import AlertRule
from apps.definitions.shapes.operations.alert_rule import pattern_fits
from apps.definitions.shapes.operations.alert_watches import BUILT_IN, WATCHES

# Less is better there: the rule looks for values below its threshold.
FALLING = frozenset({"certificate_expiring"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule with everything filled in; `row` is None for one that is built in."""

    name: str
    watches: str
    only: tuple[str, ...]
    threshold: float | None
    for_s: int
    severity: str
    enabled: bool
    row: AlertRule | None = None

    def wants(self, account: str, name: str, value: float | None) -> bool:
        """Whether the rule finds this object wrong, given that its value is this."""
        if self.only and not any(pattern_fits(pattern, account, name) for pattern in self.only):
            return False
        if value is None or self.threshold is None:
            return True
        return value <= self.threshold if self.watches in FALLING else value >= self.threshold


def rule_of(name: str, watches: str, row: AlertRule | None = None) -> Rule:
    """A rule by what its row says and its watch has by default."""
    watch = WATCHES[watches]
    threshold = watch.threshold.default if watch.threshold else None
    if row is None:
        return Rule(name, watches, (), threshold, watch.for_s, watch.severity, True)
    return Rule(
        name,
        watches,
        tuple(row.only),
        threshold if row.threshold is None else row.threshold,
        watch.for_s if row.for_s is None else row.for_s,
        row.severity or watch.severity,
        row.enabled,
        row,
    )


def rules_of(account: Account, rows: Iterable[AlertRule]) -> list[Rule]:
    """Every rule of an account whose own rows are these, built-in ones first; of operators' watches only theirs."""
    own = {row.name: row for row in rows if row.watches in WATCHES}
    known = {name: word for name, word in BUILT_IN.items() if account.is_operator or not WATCHES[word].operators}
    found = [rule_of(name, watches, own.pop(name, None)) for name, watches in known.items()]
    return found + [rule_of(row.name, row.watches, row) for row in own.values()]


def rules_by_watch(accounts: Iterable[Account]) -> Mapping[tuple[int, str], list[Rule]]:
    """The enabled rules by account (primary key) and watch. One query."""
    rows: dict[int, list[AlertRule]] = defaultdict(list)
    for row in AlertRule.objects.order_by("name"):
        rows[row.account_id].append(row)
    found: dict[tuple[int, str], list[Rule]] = defaultdict(list)
    for account in accounts:
        for rule in rules_of(account, rows[account.pk]):
            if rule.enabled:
                found[account.pk, rule.watches].append(rule)
    return found
