"""The entry points: a snapshot goes in, what its target needs and all that must be said about it come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from apps.compiler.bundle import Bundle, assemble
from apps.compiler.checks.snapshot import examine
from apps.compiler.checks.stack import examine_stack
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Finding
from apps.compiler.model.stack import StackSnapshot
from apps.compiler.portability.capabilities import CAPABILITIES, RENDERERS
from apps.compiler.targets.haproxy.render import addresses_of, check, nodes_of, render
from apps.compiler.targets.terraform.document import StackDocument

Output = TypeVar("Output")


class CompileError(Exception):
    """Nothing sensible can be made of the snapshot; `findings` say why, in sentences for operators."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


@dataclass(frozen=True, slots=True)
class Compilation(Generic[Output]):
    """A fleet's bundle or a stack's document; who was left out of it; what works but is worth knowing."""

    output: Output
    left_out: tuple[Finding, ...]
    warnings: tuple[Finding, ...]


def compile_snapshot(snapshot: Snapshot) -> Compilation[Bundle]:
    """Turn a fleet's definitions into the files its nodes run; pure, and equal input gives equal bytes.

    1. Examine: objects that fail a check are left out and named, with those that need them.
    2. Render what is left from a model.
    3. Read the text back: config verification must find exactly what the model meant, else CompileError.
    4. Seal the files with their digests.
    """
    examination = examine(snapshot)
    rendering = render(examination.accepted)
    surprises = check(rendering)
    if surprises:
        raise CompileError(tuple(surprises))
    accepted = examination.accepted
    named = (nodes_of(accepted), addresses_of(accepted))
    bundle = assemble(rendering.files, rendering.binds, rendering.line_owners, *named)
    return Compilation(bundle, examination.left_out, examination.warnings)


def compile_stack(snapshot: StackSnapshot) -> Compilation[StackDocument]:
    """Turn a stack's definitions into resources; pure, and equal input gives equal documents."""
    examination = examine_stack(snapshot, CAPABILITIES[snapshot.cloud])
    document = RENDERERS[snapshot.cloud](examination.accepted)
    return Compilation(document, examination.left_out, examination.warnings)
