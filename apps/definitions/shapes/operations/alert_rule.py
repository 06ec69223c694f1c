"""The shape of an AlertRule: what it looks at, from when on that is an alert, and how bad it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from apps.core.errors import FieldError
from apps.core.written.numbers import measured, plain
from apps.definitions.shapes.base.shape import About, Distinct, Shape
from apps.definitions.shapes.base.words import Boolean, at_most, matching, one_of, real, text, whole
from apps.definitions.shapes.operations.alert_watches import SEVERITIES, WATCHES, Watch

MOST_OBJECTS = 50
LONGEST_S = 24 * 3600
_PATTERN = r"[a-z0-9*-]{1,63}(/[a-z0-9*-]{1,63})?"
read_pattern = matching(_PATTERN, "pattern", "Write a name, or account/name; * stands for any part of it.", 127)


def pattern_fits(pattern: str, account: str, name: str) -> bool:
    """Whether a pattern of a rule or silence means the object; one without account means those of all accounts."""
    full = pattern if "/" in pattern else f"*/{pattern}"
    expression = ".*".join(map(re.escape, full.split("*")))
    return re.fullmatch(expression, f"{account}/{name}") is not None


@dataclass(frozen=True, slots=True)
class AlertRuleSpec(Shape):
    """What makes an alert. A rule with the name of a built-in rule takes its place."""

    watches: Annotated[
        str,
        one_of(labels={word: watch.label for word, watch in WATCHES.items()}),
        About("What the rule looks at.", "Watches", "", "pool_errors", missing="Say what the rule looks at."),
    ]
    only: Annotated[
        tuple[Annotated[str, text(read_pattern, "a name, or account/name", 127, f"^{_PATTERN}$")], ...],
        at_most(MOST_OBJECTS, "patterns in one rule"),
        Distinct(),
        About(
            "Names of the objects; `*` stands for any part of a name. Default: all of them.",
            "Only these",
            "Names of pools, certificates and so on. * stands for any part: shop-*. Default: all.",
            "shop-*",
        ),
    ] = ()
    threshold: Annotated[
        Annotated[float, real(0, 1_000_000)] | None,
        About(
            "The number from which on it is wrong; days until a certificate expires. Default: as the table of rules "
            "in [alerts](../use/alerts.md) says.",
            "Threshold",
            "In the unit of what is watched: %, ms or days. Default: see the rule.",
            10,
        ),
    ] = None
    for_s: Annotated[
        Annotated[int, whole(0, LONGEST_S)] | None,
        About(
            "For how many seconds it must be wrong. Default: as the table says.",
            "For, s",
            "Seconds it must last before it is an alert. Default: see the rule.",
        ),
    ] = None
    severity: Annotated[
        Annotated[str, one_of(labels=SEVERITIES)] | None,
        About("How bad it is. Default: as the table says.", "Severity", "Not set: the default."),
    ] = None
    enabled: Annotated[Boolean, About("Whether the rule is evaluated.", "Enabled", "")] = True

    def contradictions(self) -> Iterator[FieldError]:
        """A threshold needs something to measure, within its bounds; Spillway's own parts have no names."""
        watch = WATCHES[self.watches]
        if self.threshold is None and not watch.built_in:
            detail = f"Say from which value on {self.watches} is wrong: there is no default."
            yield FieldError("/threshold", "missing", detail)
        if self.threshold is not None:
            yield from _threshold_errors(self.threshold, watch, self.watches)
        if self.only and watch.noun == "Spillway":
            yield FieldError("/only", "only", f"{self.watches} watches Spillway itself; leave only out.")


def _threshold_errors(value: float, watch: Watch, word: str) -> Iterator[FieldError]:
    bounds = watch.threshold
    if bounds is None:
        yield FieldError("/threshold", "threshold", f"{word} has no threshold; leave it out.")
    elif not bounds.lowest <= value <= bounds.highest:
        detail = f"Use a number from {plain(bounds.lowest, 6)} to {measured(bounds.highest, bounds.unit, 6)}."
        yield FieldError("/threshold", "out_of_range", detail)
