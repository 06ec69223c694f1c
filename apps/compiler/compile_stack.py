"""A stack's snapshot goes in, what Terraform must make and what must be said come out."""

from __future__ import annotations

from dataclasses import dataclass

from apps.compiler import grammar
from apps.compiler.checks.stack import examine_stack
from apps.compiler.model.fleet import Finding
from apps.compiler.model.stack import StackSnapshot
from apps.compiler.portability.capabilities import CAPABILITIES, RENDERERS
from apps.compiler.targets.terraform.document import StackDocument
from apps.compiler.targets.terraform.expressions import key_variable
from apps.compiler.targets.terraform.pem import parts_of


@dataclass(frozen=True, slots=True)
class StackCompilation:
    """The document; who was left out of it; what works but not as it is written."""

    document: StackDocument
    refused: tuple[Finding, ...]
    warnings: tuple[Finding, ...]


def compile_stack(snapshot: StackSnapshot) -> StackCompilation:
    """Turn a stack's definitions into resources; pure, and equal input gives equal documents."""
    examination = examine_stack(snapshot, CAPABILITIES[snapshot.cloud])
    document = RENDERERS[snapshot.cloud](examination.accepted)
    return StackCompilation(document, examination.refused, examination.warnings)


def secrets_of(snapshot: StackSnapshot) -> dict[str, str]:
    """The values of the document's sensitive variables: private keys, which the document itself never carries.

    A certificate that the checks refuse has none.
    """
    return {key_variable(each.id): parts_of(each.pem).key for each in snapshot.certificates if _is_pem(each.pem)}


def _is_pem(text: str) -> bool:
    try:
        grammar.pem(text)
    except grammar.GrammarError:
        return False
    return True
