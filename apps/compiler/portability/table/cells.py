"""What the table is made of: a row for a field, a column for a target, a verdict with sentences in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from apps.compiler.model.capabilities import Capability, NodeBuild

Version = tuple[int, int]


class Column(StrEnum):
    """A target of its own: a version of HAProxy, a kind of load balancer in a cloud."""

    HAPROXY_2_6 = "HAProxy 2.6"
    HAPROXY_2_8 = "HAProxy 2.8"
    HAPROXY_3_0 = "HAProxy 3.0"
    HAPROXY_3_2 = "HAProxy 3.2"
    ALB = "ALB"
    NLB = "NLB"
    GOOGLE = "Google Cloud"


VERSIONS: dict[Column, Version] = {
    Column.HAPROXY_2_6: (2, 6),
    Column.HAPROXY_2_8: (2, 8),
    Column.HAPROXY_3_0: (3, 0),
    Column.HAPROXY_3_2: (3, 2),
}
CLOUDS = (Column.ALB, Column.NLB, Column.GOOGLE)


class Verdict(StrEnum):
    """How a target does what a field says; `UNUSED` is a field that has no meaning there, so nothing is lost."""

    EXACT = "exact"
    LOSSY = "with loss"
    NOT = "not"
    UNUSED = "does not apply"


@dataclass(frozen=True, slots=True)
class Cell:
    """A verdict; `message` says what is lost or why not, `remedy` what to do instead."""

    verdict: Verdict
    message: str = ""
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """Both for people."""
        return f"{self.message} {self.remedy}".strip()


EXACT = Cell(Verdict.EXACT)
UNUSED = Cell(Verdict.UNUSED, "This target has no use for the field.", "Leave it out.")


def lossy(message: str, remedy: str = "") -> Cell:
    """It works, and differs in what the message says, or for the values that it names."""
    return Cell(Verdict.LOSSY, message, remedy)


def cannot(message: str, remedy: str) -> Cell:
    """Who sets the field is refused."""
    return Cell(Verdict.NOT, message, remedy)


@dataclass(frozen=True, slots=True)
class Row:
    """A field, by its path in a document, with all fields in it that have no row; `value`: only where it says that.

    HAProxy can what `haproxy` says, from the version on that `since` names; before, `before`.
    """

    field: str
    alb: Cell = EXACT
    nlb: Cell = EXACT
    google: Cell = EXACT
    haproxy: Cell = EXACT
    value: str = ""
    since: Capability | None = None
    before: Cell = EXACT

    @property
    def name(self) -> str:
        """`path_kind: regex`."""
        return f"{self.field}: {self.value}" if self.value else self.field

    def on(self, column: Column) -> Cell:
        """What the target of this column can."""
        if column in VERSIONS:
            return self.on_haproxy(VERSIONS[column])
        return {Column.ALB: self.alb, Column.NLB: self.nlb, Column.GOOGLE: self.google}[column]

    def on_haproxy(self, version: Version) -> Cell:
        """What this version of HAProxy can."""
        return self.before if self.since is not None and version < self.since.since else self.haproxy

    def on_build(self, build: NodeBuild) -> Cell:
        """What the HAProxy of a node can."""
        return self.before if self.since is not None and not self.since.has(build) else self.haproxy

    def covers(self, path: str) -> bool:
        """Whether the row speaks of a field of a document."""
        return not self.value and (path == self.field or path.startswith(f"{self.field}."))
