"""The entry point: a snapshot goes in, the sealed bundle and all that must be said about it come out."""

from __future__ import annotations

from dataclasses import dataclass

from apps.compiler.bundle import Bundle, assemble
from apps.compiler.checks.snapshot import examine
from apps.compiler.model.fleet import Finding, Snapshot
from apps.compiler.targets.haproxy.render import addresses_of, check, nodes_of, render


class CompileError(Exception):
    """Nothing sensible can be made of the snapshot; `findings` say why, in sentences for operators."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


@dataclass(frozen=True, slots=True)
class Compilation:
    """The bundle; who was left out of it; what works but is worth knowing."""

    bundle: Bundle
    quarantined: tuple[Finding, ...]
    warnings: tuple[Finding, ...]


def compile_snapshot(snapshot: Snapshot) -> Compilation:
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
    return Compilation(bundle, examination.quarantined, examination.warnings)
