"""Protected addresses: no plan lets one go, whoever approved it."""

from __future__ import annotations

from collections.abc import Sequence

from apps.fleet.models import StaticIP
from apps.stacks.models import StackRun
from apps.stacks.review import policies
from apps.stacks.review.differences import Difference


def would_release(run: StackRun, changes: Sequence[Difference]) -> list[str]:
    """Labels of the addresses that the plan would release, and that are protected now."""
    rows = StaticIP.objects.filter(stack_id=run.stack_id, protected=True)
    return policies.released(changes, {f"ip-{pk}" for pk in rows.values_list("pk", flat=True)})


def sentence(labels: Sequence[str]) -> str:
    """Why the plan does not go on, and what to do."""
    what = f"{', '.join(labels)} is protected and would be released to the cloud."
    return f"{what} To release it, remove the protection first."
