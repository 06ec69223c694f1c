"""Comparisons: two tests in turn, A B A B, one run at a time; the result says what differs and how surely."""

from __future__ import annotations

from django.db import transaction

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit import services as audit
from apps.capacity.measure import comparing
from apps.capacity.models import Comparison, Run
from apps.capacity.services import request_run
from apps.core.errors import FieldError, Invalid
from apps.core.events import publish_after_commit
from apps.definitions.models import CapacityTest
from apps.definitions.selectors import capacity_tests, only

FEWEST_ROUNDS, MOST_ROUNDS = 2, 10


def request_comparison(*, actor: Actor, first_id: int, second_id: int, rounds: int = 3, reason: str = "") -> Comparison:
    """Begin to compare two tests of one account; the runs follow one another by themselves (`advance_all`).

    Raises NotFound, Forbidden (viewers), Invalid (the same test twice, other than 2 to 10 rounds).
    """
    actor.may_write("capacity-tests")
    first, second = only(capacity_tests(actor), first_id), only(capacity_tests(actor), second_id)
    field_errors = list(_field_errors(first, second, rounds))
    if field_errors:
        raise Invalid(field_errors)
    with transaction.atomic():
        made = Comparison.objects.create(
            account=first.account, first=first, second=second, rounds=rounds, actor=actor.name[:150]
        )
        audit.record(
            actor=actor,
            action="compare",
            kind="Comparison",
            object_id=made.pk,
            label=str(made)[:400],
            account=first.account,
            after={"first": first.name, "second": second.name, "rounds": rounds},
            reason=reason,
        )
        publish_after_commit("runs")
    request_run(actor=actor, test_id=first.pk, request_key=_key(made, 0), comparison=made, reason=reason)
    return made


def _field_errors(first: CapacityTest, second: CapacityTest, rounds: int) -> list[FieldError]:
    field_errors = []
    if first.pk == second.pk:
        field_errors.append(FieldError("/second", "same", "Compare two different tests; this is the same one twice."))
    if first.account_id != second.account_id:
        field_errors.append(FieldError("/second", "account", "Both tests must belong to the same account."))
    if first.load.get("kind") != second.load.get("kind"):
        field_errors.append(FieldError("/second", "load", "Both tests must use the same kind of load."))
    if not FEWEST_ROUNDS <= rounds <= MOST_ROUNDS:
        field_errors.append(
            FieldError(
                "/rounds", "range", f"Give {FEWEST_ROUNDS} to {MOST_ROUNDS} rounds: a single round is not enough."
            )
        )
    return field_errors


def _key(comparison: Comparison, number: int) -> str:
    """What makes each run of a comparison happen once, whoever asks for it."""
    return f"comparison-{comparison.pk}-{number}"


def advance_all() -> None:
    """Take every comparison that is not over one run further; the sweep calls it, any number may."""
    for row in Comparison.objects.filter(result__isnull=True).select_related("account", "first", "second"):
        advance(row)


def advance(comparison: Comparison) -> None:
    """The next run when the one before is done; the result after the last, or as soon as one broke off."""
    runs = list(Run.objects.filter(comparison=comparison).order_by("id"))
    if any(run.state in Run.OPEN for run in runs):
        return
    broken = next((run for run in runs if run.state != Run.State.DONE), None)
    if broken is not None:
        _finish(
            comparison, runs, f"It ended early: {broken.name} {broken.get_state_display().lower()}. {broken.message}"
        )
    elif len(runs) >= 2 * comparison.rounds:
        _finish(comparison, runs)
    else:
        test = (comparison.first, comparison.second)[len(runs) % 2]
        actor = Actor(f"comparison {comparison.pk}", comparison.account, Membership.Role.EDITOR)
        request_run(actor=actor, test_id=test.pk, request_key=_key(comparison, len(runs)), comparison=comparison)


def _finish(comparison: Comparison, runs: list[Run], broken: str = "") -> None:
    found = comparing.document(differences(comparison, runs))
    result = found | {"ended_early": broken, "runs": [run.pk for run in runs]}
    if broken and not found["differences"]:
        result["message"] = broken
    if Comparison.objects.filter(pk=comparison.pk, result__isnull=True).update(result=result):
        publish_after_commit("runs")


def differences(comparison: Comparison, runs: list[Run]) -> list[comparing.Difference]:
    """What the runs that are done show by now."""
    found: tuple[list[comparing.Observation], list[comparing.Observation]] = ([], [])
    for number, run in enumerate(runs):
        if run.state == Run.State.DONE and run.result:
            found[number % 2].append(comparing.observed(run.result))
    return comparing.compare(found[0], found[1], names=(comparison.first.name, comparison.second.name))
