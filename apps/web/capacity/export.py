"""The numbers of a run to take away: steps as CSV, everything with its histograms as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

from django.http import HttpResponse

from apps.audit.exporting import cell
from apps.capacity import selectors
from apps.capacity.models import Run, Step
from apps.web.kit.pages import PageRequest, page

COLUMNS = (
    *("ordinal", "purpose", "rate", "users", "started_at", "seconds", "offered", "answered", "error_rate"),
    *("p50_ms", "p95_ms", "p99_ms", "max_ms", "status", "message"),
)
SECOND_COLUMNS = ("at", "target", "offered", "answered", "errors", "in_flight", "p50_ms", "p95_ms", "p99_ms")


@page
def export(request: PageRequest, pk: str, kind: str) -> HttpResponse:
    """The steps of a run as `csv`, or run, steps and seconds as `json`; latencies in ms, rates in requests/s."""
    run = selectors.run(request.actor, int(pk))
    response = _csv(run) if kind == "csv" else _json(run)
    response["Content-Disposition"] = f'attachment; filename="{run.name}.{kind}"'
    return response


def _csv(run: Run) -> HttpResponse:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for step in run.steps.defer("histogram").order_by("ordinal"):
        writer.writerow([cell(getattr(step, name)) for name in COLUMNS])
    return HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")


def _json(run: Run) -> HttpResponse:
    found = {
        "run": run.name,
        "test": run.label,
        "state": run.state,
        "started_at": run.started_at.isoformat() if run.started_at else None,
        "ended_at": run.ended_at.isoformat() if run.ended_at else None,
        "plan": run.plan,
        "result": run.result,
        "histograms": "HDR (V2), base64, microseconds",
        "steps": [_step(step) for step in run.steps.order_by("ordinal")],
        "seconds": list(_seconds(run)),
    }
    return HttpResponse(json.dumps(found, indent=1), content_type="application/json")


def _step(step: Step) -> dict[str, object]:
    found = {name: getattr(step, name) for name in (*COLUMNS, "errors", "histogram")}
    return found | {"started_at": step.started_at.isoformat()}


def _seconds(run: Run) -> Iterator[dict[str, object]]:
    for row in run.seconds.order_by("at").values(*SECOND_COLUMNS):
        yield row | {"at": row["at"].isoformat()}
