"""Protected addresses: no plan lets one go, whoever approved it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from apps.fleet.models import StaticIP
from apps.stacks.models import StackRun
from apps.stacks.review import policies
from apps.stacks.review.differences import Difference


def would_release(run: StackRun, changes: Sequence[Difference]) -> list[str]:
    """Labels of the addresses that the plan would release, and that are protected now."""
    rows = StaticIP.objects.filter(stack_id=run.stack_id, protected=True)
    return policies.released(changes, {f"ip-{pk}" for pk in rows.values_list("pk", flat=True)})


def sentence(labels: Collection[str]) -> str:
    """Why the plan does not go on, and what to do."""
    are, it = ("are", "them") if len(labels) > 1 else ("is", "it")
    what = f"{', '.join(labels)} {are} protected and would be released to the cloud."
    return f"{what} To release {it}, remove the protection first."
