"""How commands that apply documents show a plan, and say why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from apps.core.errors import Invalid, SpillwayError
from apps.definitions.services import Plan


@contextmanager
def errors_told(named: Callable[[str], str] = str) -> Iterator[None]:
    """Raises CommandError with one line for each faulty field; `named` says a pointer in the words of the command."""
    try:
        yield
    except Invalid as invalid:
        errors = "\n".join(f"  {named(each.pointer)}: {each.detail}" for each in invalid.field_errors)
        raise CommandError(f"Nothing was stored.\n{errors}") from invalid
    except SpillwayError as error:
        raise CommandError(error.detail) from error


def lines(plan: Plan) -> Iterator[str]:
    """One line for each object that changes, what is kept and why, and the counts."""
    for change in plan.changes:
        if change.action != "unchanged":
            owner = f"{change.account}/" if change.account else ""
            yield f"{change.action:<7} {change.kind} {owner}{change.name}"
    yield from plan.kept
    counts = ", ".join(f"{count} {action}" for action, count in plan.counts.items())
    yield f"{'Applied' if plan.stored else 'Would do'}: {counts}."
