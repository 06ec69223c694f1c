"""CHECK: the notebook of the checks; who is left out, why, and what people should know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.grammar import GrammarError
from apps.compiler.model.fleet import Finding
from apps.compiler.portability.incompatibilities import Named


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

    def warn(self, thing: Named, code: str, message: str, field_name: str = "") -> None:
        """Let the object through and say what people should know."""
        self.warnings.append(Finding(code, thing.id, thing.label, message, field_name))

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
