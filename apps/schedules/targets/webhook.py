"""Target webhook: a signed POST to a public address, at least once, with the run's key as `webhook-id`."""

from __future__ import annotations

import json
from datetime import datetime

from apps.core import outbound
from apps.core.called_urls import Refused
from apps.schedules.models import ScheduleRun
from apps.schedules.targets.contract import Outcome, TargetFailed
from apps.schedules.triggers.signing import live_secrets
from apps.webhooks.services import schemes
from apps.webhooks.signing import signed_headers

TYPE = "schedule_run.started"
ANSWER_BYTES = 1024
GONE = 410


def act(run: ScheduleRun, now: datetime) -> Outcome:
    """One request. Raises TargetFailed unless the receiver takes it; 410 and a refused address are final."""
    schedule, body = run.schedule, body_of(run)
    headers = {"Content-Type": "application/json", "User-Agent": "Spillway-Schedules/1"}
    headers |= signed_headers(run.key, now, body, live_secrets(schedule))
    try:
        answer = outbound.fetch(
            schedule.target["url"],
            method="POST",
            headers=headers,
            body=body,
            timeout=schedule.timeout_s,
            limit=ANSWER_BYTES,
            schemes=schemes(),
        )
    except Refused as refusal:
        raise TargetFailed(str(refusal), final=True) from refusal
    except outbound.Unreachable as error:
        raise TargetFailed(str(error)) from error
    if not 200 <= answer.status < 300:
        raise TargetFailed(f"The receiver answered {answer.status}, not 2xx.", final=answer.status == GONE)
    message = f"The receiver answered {answer.status} in {answer.milliseconds} ms."
    return Outcome(message, {"status": answer.status, "milliseconds": answer.milliseconds})


def body_of(run: ScheduleRun) -> bytes:
    """What is sent, the same at every attempt: the schedule's own text, and what a trigger's caller sent."""
    schedule = run.schedule
    data = {
        "schedule_run": run.pk,
        "schedule": f"{schedule.account.name}/{schedule.name}",
        "scheduled_at": run.scheduled_at.isoformat(),
        "cause": str(run.cause),
        "body": schedule.target["body"],
        "sent": run.body,
    }
    return json.dumps({"type": TYPE, "timestamp": run.scheduled_at.isoformat(), "data": data}).encode()
