"""What a run found against the run before it of the same test: a change, or nothing that can be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.capacity.models import Run
from apps.core.written.numbers import plain


def since_last(run: Run, found: Mapping[str, Any]) -> dict[str, Any] | None:
    """The difference to the last finished run of the test that found a capacity; None where there is none.

    `change` is relative to the last one; `shown` says that the spans of both do not meet.
    """
    if run.test_id is None or not found.get("capacity"):
        return None
    before = Run.objects.filter(test=run.test_id, state=Run.State.DONE, pk__lt=run.pk).order_by("-pk")[:10]
    last = next((each for each in before if (each.result or {}).get("capacity")), None)
    if last is None:
        return None
    return {"run_id": last.pk, "run": last.name, **difference(found, last.result or {}, last.name)}


def difference(found: Mapping[str, Any], last: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Two results with a capacity each, in numbers and in a sentence."""
    now, then = float(found["capacity"]), float(last["capacity"])
    change = now / then - 1
    shown = _apart(found, last)
    word = "more" if change > 0 else "less"
    size = f"{100 * abs(change):.1f} % {word} than {name} found ({plain(then)} requests/s)"
    message = f"{size}." if shown else f"No significant difference from {name}: {size}, within the confidence of both."
    return {"before": then, "change": change, "shown": shown, "message": message}


def _apart(found: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    """Whether the spans do not meet; one without an upper end reaches any height."""
    first, second = sorted((found, last), key=lambda each: float(each["capacity"]))
    top = first.get("high")
    return top is not None and float(top) < float(second.get("low") or second["capacity"])
