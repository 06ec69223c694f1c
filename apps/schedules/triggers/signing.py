"""What signs the webhooks of a schedule: a secret of its own, shown once, exchanged without a gap.

The first delivery makes a secret if nobody has asked for one yet; asking makes a new one and shows it.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import Conflict
from apps.core.secrets.sealing import seal, unseal
from apps.definitions.models import Schedule
from apps.definitions.selectors import only, schedules
from apps.schedules.models import SigningSecret
from apps.webhooks.signing import new_secret

TWO_SECRETS_FOR = timedelta(hours=24)


def live_secrets(schedule: Schedule) -> list[str]:
    """Every secret that signs at present, the newest first."""
    row, _ = SigningSecret.objects.get_or_create(schedule=schedule, defaults={"sealed": seal(new_secret().encode())})
    sealed = [row.sealed]
    if row.previous and row.previous_until and row.previous_until > now():
        sealed.append(row.previous)
    return [unseal(each).decode() for each in sealed]


@transaction.atomic
def rotate_signing_secret(*, actor: Actor, schedule_id: int, reason: str = "") -> str:
    """Make a new secret, returned this once; the one before signs as well for another 24 hours.

    Raises NotFound, Forbidden, Conflict for a schedule that calls no webhook.
    """
    actor.may_write("schedules")
    schedule = only(schedules(actor).select_for_update(of=("self",)), schedule_id)
    if schedule.target_kind != Schedule.TargetKind.WEBHOOK:
        raise Conflict(
            "Only schedules that call a webhook have a signing secret; give it a target of kind webhook first."
        )
    secret = new_secret()
    sealed, present = seal(secret.encode()), SigningSecret.objects.filter(schedule=schedule).first()
    if present is None:
        SigningSecret.objects.create(schedule=schedule, sealed=sealed)
    else:
        present.previous, present.previous_until, present.sealed = present.sealed, now() + TWO_SECRETS_FOR, sealed
        present.save()
    audit.record(
        actor=actor,
        action="rotate",
        kind="Schedule",
        object_id=schedule.pk,
        label=f"{schedule.account.name}/{schedule.name}",
        account=schedule.account,
        version=schedule.version,
        reason=reason,
    )
    return secret
