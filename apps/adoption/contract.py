"""The promise of every mapping: documents of ours, and a line for everything that was found.

A mapping is a pure function `adopt(found: FoundLoadBalancer, wish: Wish) -> Adoption`. It never guesses: a condition
that we cannot say is left out with its route, since a route without it would take more than the cloud's rule did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """mapped: it will work as it did. lossy: it will work, and differ in what the reason says. left_out: it is gone."""

    MAPPED = "mapped"
    LOSSY = "lossy"
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True)
class ReportLine:
    """What became of one thing: `found` names it in the cloud's words, `kind` and `name` our object where there is one.

    `reason` is a sentence; it is empty only for what was mapped.
    """

    found: str
    verdict: Verdict
    reason: str = ""
    kind: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the cloud cannot know: names of ours.

    `name` is that of the load balancer, `account` owns what is not the operator's. `regions` says in which of our
    regions the cloud's zones, subnets or regions are; `certificates` and `addresses` are those of ours that stand for
    the cloud's (by their names there), since private keys cannot be read. `stack` is where the load balancer shall
    stand.
    """

    name: str
    account: str
    regions: Mapping[str, str] = field(default_factory=dict)
    certificates: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    stack: str = ""


@dataclass(frozen=True, slots=True)
class Adoption:
    """Documents in an order in which they can be applied, and the report."""

    documents: tuple[dict[str, Any], ...]
    report: tuple[ReportLine, ...]


class Report:
    """The lines while they are written."""

    def __init__(self) -> None:
        self.lines: list[ReportLine] = []

    def mapped(self, found: str, kind: str, name: str) -> None:
        """It became an object of ours."""
        self.lines.append(ReportLine(found, Verdict.MAPPED, "", kind, name))

    def lossy(self, found: str, reason: str, kind: str = "", name: str = "") -> None:
        """It works, and differs."""
        self.lines.append(ReportLine(found, Verdict.LOSSY, reason, kind, name))

    def left_out(self, found: str, reason: str) -> None:
        """It has no place here."""
        self.lines.append(ReportLine(found, Verdict.LEFT_OUT, reason))
