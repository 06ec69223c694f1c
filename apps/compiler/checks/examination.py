"""The notebook of the checks; who is left out, why, and what people should know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from apps.compiler.grammar import GrammarError
from apps.compiler.model.shared import Finding, LoadBalancer, Unreadable
from apps.compiler.portability.incompatibilities import Incompatibility, Named

Accepted = TypeVar("Accepted")
Thing = TypeVar("Thing", bound=Named)


@dataclass(frozen=True, slots=True)
class Examination(Generic[Accepted]):
    """The snapshot that may be rendered, who was left out of it, and what people should know.

    `incompatibilities` are those of them that the target alone is to blame for.
    """

    accepted: Accepted
    left_out: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    incompatibilities: tuple[Incompatibility, ...] = ()


@dataclass(slots=True)
class Notes:
    """Findings as they are made; an object with one in `quarantined` is left out of the bundle."""

    quarantined: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    _out: set[str] = field(default_factory=set)

    def quarantine(self, thing: Named, code: str, message: str, field_name: str = "") -> None:
        """Leave the object out and say why."""
        self.refuse(Finding(code, thing.id, thing.label, message, field_name))

    def refuse(self, finding: Finding) -> None:
        """The same for what somebody else has found."""
        self._out.add(finding.object_id)
        self.quarantined.append(finding)

    def refuse_unreadable(self, rows: Iterable[Unreadable]) -> None:
        """What could not even be frozen."""
        for row in rows:
            self.quarantine(
                row, "unreadable", f"What is stored as {row.field} cannot be read; save it again.", row.field
            )

    def refuse_twins(self, things: Iterable[Named]) -> None:
        """One id, one object: ids become names, of which the first or the last would win unseen."""
        everything = list(things)
        counts = Counter(thing.id for thing in everything)
        for thing in everything if len(counts) < len(everything) else ():
            if counts[thing.id] > 1:
                self.quarantine(thing, "id_twice", f"Report this to the operators: {thing.id} names two objects.", "id")

    def kept_of(self, front: LoadBalancer) -> LoadBalancer:
        """The load balancer without what was left out."""
        return replace(front, listeners=self.kept(front.listeners), routes=self.kept(front.routes))

    def warn(self, thing: Named, code: str, message: str, field_name: str = "") -> None:
        """Let the object through and say what people should know."""
        self.warnings.append(Finding(code, thing.id, thing.label, message, field_name))

    def kept(self, things: Iterable[Thing]) -> tuple[Thing, ...]:
        """Those that were not left out."""
        return tuple(each for each in things if not self.is_out(each.id))

    def examined(self, accepted: Accepted, incompatibilities: Iterable[Incompatibility] = ()) -> Examination[Accepted]:
        """What came of it."""
        return Examination(accepted, _in_order(self.quarantined), _in_order(self.warnings), tuple(incompatibilities))

    def is_out(self, object_id: str) -> bool:
        """Whether the object was left out."""
        return object_id in self._out

    def ask(self, thing: Named, field_name: str, grammar: Callable[..., object], value: object, **how: Any) -> bool:
        """Put one value to its grammar; a refusal quarantines the object."""
        try:
            grammar(value, **how)
        except GrammarError as error:
            self.quarantine(thing, error.code, error.message, field_name)
            return False
        return True


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each once, by object, field, code and message."""
    return tuple(sorted(set(findings), key=lambda each: (each.object_id, each.field, each.code, each.message)))
